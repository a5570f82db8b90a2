# Makes PAGE, the manual page of PROGRAM, of its --help: cmake -D HELP2MAN= -D PROGRAM= -D NAME= -D VERSION= -D PAGE= -P man_page.cmake
# The line NAME of the page is the first line of --help. The program is called NAME there, as it is when it is installed.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[^\n]+" line "${help}")
string(REGEX REPLACE "\\.$" "" line "${line}")
string(REGEX REPLACE "^tessera-" "" short ${NAME})
get_filename_component(folder ${PAGE} DIRECTORY)

# help2man runs what it is given: a script that prints the help.
string(REGEX REPLACE "(\nUsage: |\n  |\\| |: )${short} " "\\1${NAME} " help "${help}")
string(REGEX REPLACE "\n  (-[A-Za-z]),--" "\n  \\1, --" help "${help}")  # as help2man knows a short name
file(WRITE ${folder}/${NAME}.txt "${help}")
file(WRITE ${folder}/${NAME} "#!/bin/sh\n[ \"$1\" != --help ] || exec cat \"$0.txt\"\necho \"${NAME} ${VERSION}\"\n")
file(CHMOD ${folder}/${NAME} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C.UTF-8 ${HELP2MAN} --no-info --locale=C.UTF-8 --manual "tessera ${VERSION}" --source "tessera ${VERSION}"
  --name "${line}" --output ${PAGE} ${folder}/${NAME} COMMAND_ERROR_IS_FATAL ANY)
