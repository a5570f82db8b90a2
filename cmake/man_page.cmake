# Makes the manual page PAGE from the --help of PROGRAM: cmake -D HELP2MAN= -D PROGRAM= -D NAME= -D VERSION= -D PAGE= -P man_page.cmake
# The page calls the program NAME, the name under which it is installed. The summary of the page is the first line of --help.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[^\n]+" line "${help}")
string(REGEX REPLACE "\\.$" "" line "${line}")
string(REGEX REPLACE "^tessera-" "" short ${NAME})
get_filename_component(folder ${PAGE} DIRECTORY)

# help2man runs a program to get its help, so it gets a script that prints the help with the names replaced.
string(REGEX REPLACE "(\nUsage: |\n  |\\| |: )${short} " "\\1${NAME} " help "${help}")
string(REGEX REPLACE "\n  (-[A-Za-z]),--" "\n  \\1, --" help "${help}")  # the form in which help2man recognises a short name
file(WRITE ${folder}/${NAME}.txt "${help}")
file(WRITE ${folder}/${NAME} "#!/bin/sh\n[ \"$1\" != --help ] || exec cat \"$0.txt\"\necho \"${NAME} ${VERSION}\"\n")
file(CHMOD ${folder}/${NAME} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C.UTF-8 ${HELP2MAN} --no-info --locale=C.UTF-8 --manual "tessera ${VERSION}" --source "tessera ${VERSION}"
  --name "${line}" --output ${PAGE} ${folder}/${NAME} COMMAND_ERROR_IS_FATAL ANY)
