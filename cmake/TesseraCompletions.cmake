# Makes completions for bash, zsh and fish, and a manual page, for each installed program. They are made by running the program, so a build
# for another machine has none. Targets:
#   completions  the scripts that PROGRAM --completion SHELL prints; part of `all`
#   man          manual pages, which help2man makes from --help; not part of `all`. cmake --install installs the pages that exist
get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
if(NOT programs OR CMAKE_CROSSCOMPILING OR NOT UNIX)
  return()
endif()
find_program(TESSERA_HELP2MAN help2man)
mark_as_advanced(TESSERA_HELP2MAN)

# tessera_completion(PROGRAM SHELL FOLDER NAME): makes the program's completion script for the shell, and installs it as share/FOLDER/NAME.
set(scripts "")
function(tessera_completion program shell folder name)
  set(script ${PROJECT_BINARY_DIR}/completions/${folder}/${name})
  get_filename_component(where ${script} DIRECTORY)
  file(MAKE_DIRECTORY ${where})
  add_custom_command(OUTPUT ${script} COMMAND ${program} --completion ${shell} > ${script} DEPENDS ${program} VERBATIM
    COMMENT "Completions of ${program} for ${shell}")
  install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT programs)
  set(scripts ${scripts} ${script} PARENT_SCOPE)
endfunction()

set(pages "")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
foreach(program ${programs})
  get_target_property(name ${program} OUTPUT_NAME)
  if(NOT name)
    set(name ${program})
  endif()
  tessera_completion(${program} bash bash-completion/completions ${name})
  tessera_completion(${program} zsh zsh/site-functions _${name})
  tessera_completion(${program} fish fish/vendor_completions.d ${name}.fish)
  set(page ${PROJECT_BINARY_DIR}/man/${name}.1)
  if(TESSERA_HELP2MAN)
    add_custom_command(OUTPUT ${page} DEPENDS ${program} ${PROJECT_SOURCE_DIR}/cmake/man_page.cmake VERBATIM
      COMMAND ${CMAKE_COMMAND} -D HELP2MAN=${TESSERA_HELP2MAN} -D PROGRAM=$<TARGET_FILE:${program}> -D NAME=${name}
        -D VERSION=${PROJECT_VERSION} -D PAGE=${page} -P ${PROJECT_SOURCE_DIR}/cmake/man_page.cmake
      COMMENT "Manual page of ${name}")
    list(APPEND pages ${page})
  endif()
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs OPTIONAL)
endforeach()
add_custom_target(completions ALL DEPENDS ${scripts})
if(TESSERA_HELP2MAN)
  add_custom_target(man DEPENDS ${pages})
else()
  add_custom_target(man COMMAND ${CMAKE_COMMAND} -E echo "target man needs help2man: install it and configure again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
