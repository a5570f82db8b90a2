# Settings for the system that the library is built for: its folders in src/os, and the names that its loader uses.
if(CMAKE_SYSTEM_NAME STREQUAL "Windows")
  set(TESSERA_SYSTEM_FOLDERS windows)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
  set(TESSERA_SYSTEM_FOLDERS posix macos)
elseif(CMAKE_SYSTEM_NAME MATCHES "^(Linux|Android)$")
  set(TESSERA_SYSTEM_FOLDERS posix linux)
else()
  message(FATAL_ERROR "tessera runs on Linux, macOS and Windows: src/os has no folder for ${CMAKE_SYSTEM_NAME}")
endif()

# The word that stands in an rpath for the folder of the program or library itself.
if(APPLE)
  set(TESSERA_ORIGIN @loader_path)
else()
  set(TESSERA_ORIGIN $ORIGIN)
endif()

# tessera_system_sources(VARIABLE): removes the sources of other systems from the list.
function(tessera_system_sources variable)
  set(sources ${${variable}})
  foreach(folder linux macos posix windows)
    if(NOT folder IN_LIST TESSERA_SYSTEM_FOLDERS)
      list(FILTER sources EXCLUDE REGEX "/src/os/${folder}/")
    endif()
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
