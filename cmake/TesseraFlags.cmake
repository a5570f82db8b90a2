# The flags that our own code is compiled with. Nothing here reaches a consumer.

# What every translation unit of ours has: tests and tools too, so that their float arithmetic is the library's.
add_library(tessera_flags INTERFACE)
target_compile_options(tessera_flags INTERFACE
  -Wall -Wextra -Wshadow $<$<BOOL:${TESSERA_WERROR}>:-Werror>
  -ffp-contract=off)

function(tessera_library_flags target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tessera_flags>)
  target_compile_options(${target} PRIVATE -Wconversion)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)

  # A unit of many files includes them, and so looks like a header.
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()

  # The one baseline for x86-64; ARMv8 is the compiler's default. Kernels for more add theirs (TesseraKernels.cmake).
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(${target} PRIVATE -march=x86-64-v2)
  endif()

  # Hidden, so that a host's shared library does not re-export a static tessera. A shared one exports what the public
  # headers declare: it reads them, before anything else, as visible, so they need no export macro. A class that they only
  # name, such as a State, is defined as hidden.
  target_compile_options(${target} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(script ${PROJECT_SOURCE_DIR}/cmake/tessera.map)
    set(exports ${PROJECT_BINARY_DIR}/exports.hpp)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.hpp)
    list(REMOVE_ITEM headers tessera/eigen.hpp)  # templates alone, over the application's Eigen
    list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
    list(JOIN headers "" headers)
    file(CONFIGURE OUTPUT ${exports} @ONLY
      CONTENT "#pragma GCC visibility push(default)\n@headers@#pragma GCC visibility pop\n")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include\ ${exports}> -fno-semantic-interposition)
    if(APPLE)  # the same patterns, a line each, of names that begin with another underscore
      file(STRINGS ${script} patterns REGEX "^ +[_t].*\\*;$")
      list(TRANSFORM patterns REPLACE "^ +(.*);$" "_\\1")
      list(JOIN patterns "\n" patterns)
      set(script ${PROJECT_BINARY_DIR}/exports.txt)
      file(CONFIGURE OUTPUT ${script} CONTENT "@patterns@\n" @ONLY)
      target_link_options(${target} PRIVATE LINKER:-exported_symbols_list,${script})
    elseif(NOT WIN32)
      target_link_options(${target} PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
    endif()
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
  endif()
endfunction()

set(TESSERA_UNITS "" CACHE STRING
  "How many units CMAKE_UNITY_BUILD makes of the library; empty: one for each folder. A few compile sooner, and later again after a change")

# tessera_library_units(TARGET ROOT SOURCES...): which sources CMAKE_UNITY_BUILD compiles together. A folder of `root` is a unit, so that a
# new file elsewhere does not put others together. With TESSERA_UNITS the library is that many units, in the order of its files, and kernels
# that are not optimised are one for each set.
function(tessera_library_units target root)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  list(LENGTH ARGN count)
  set(index 0)
  foreach(source ${ARGN})
    if(TESSERA_UNITS)
      math(EXPR group "${index} * ${TESSERA_UNITS} / ${count}")
      math(EXPR index "${index} + 1")
    else()
      get_filename_component(folder ${source} DIRECTORY)
      file(RELATIVE_PATH folder ${root} ${folder})
      string(MAKE_C_IDENTIFIER "${folder}" group)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP unit_${group})
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns of its own std::string (GCC bugs 105329, 105562, 105651), where many texts are put together.
    set(of_its_own -Wno-restrict -Wno-maybe-uninitialized)
    if(CMAKE_UNITY_BUILD)  # in which a file with options of its own has no part
      target_compile_options(${target} PRIVATE ${of_its_own} -Wno-stringop-overflow)
    else()
      set(texts ${ARGN})
      list(FILTER texts INCLUDE REGEX "/src/(chat|grammar)/")
      set_source_files_properties(${texts} PROPERTIES COMPILE_OPTIONS "${of_its_own}")
    endif()
  endif()
endfunction()
