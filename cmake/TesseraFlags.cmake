# The compile flags of this project's own code. They do not reach projects that use tessera.

# Flags of every translation unit. Tests and tools have them too, so that they compute floats exactly as the library does.
add_library(tessera_flags INTERFACE)
target_compile_options(tessera_flags INTERFACE
  -Wall -Wextra -Wshadow $<$<BOOL:${TESSERA_WERROR}>:-Werror>
  -ffp-contract=off)

function(tessera_library_flags target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tessera_flags>)
  target_compile_options(${target} PRIVATE -Wconversion)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)

  # g++ takes the files that a unit includes for headers, and would warn of their types with members from anonymous namespaces.
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()

  # The least x86-64 processor that the library runs on. For ARMv8 the compiler's default is right. Kernels for more instructions add their
  # own flags (TesseraKernels.cmake).
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(${target} PRIVATE -march=x86-64-v2)
  endif()

  # Symbols are hidden, so that a host's shared library does not re-export a static tessera. A shared tessera exports the declarations of
  # the public headers, without an export macro: every translation unit begins with exports.hpp, which includes these headers with default
  # visibility. A class that the headers only name, such as a State, is defined as hidden.
  target_compile_options(${target} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(script ${PROJECT_SOURCE_DIR}/cmake/tessera.map)
    set(exports ${PROJECT_BINARY_DIR}/exports.hpp)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.hpp)
    list(REMOVE_ITEM headers tessera/eigen.hpp)  # has only templates, over the application's Eigen
    list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
    list(JOIN headers "" headers)
    file(CONFIGURE OUTPUT ${exports} @ONLY
      CONTENT "#pragma GCC visibility push(default)\n@headers@#pragma GCC visibility pop\n")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include\ ${exports}> -fno-semantic-interposition)
    if(APPLE)  # wants the patterns without a version script, a line each; names begin with one more underscore
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

# tessera_library_units(TARGET ROOT SOURCES...): says which sources CMAKE_UNITY_BUILD compiles together, as a unit. Each folder of `root` is
# a unit, so that a new file changes only the unit of its folder. With TESSERA_UNITS the library is divided into this number of units
# instead, in the order of its files. Then also the kernels of a set are one unit, if they are not optimised (TesseraKernels.cmake).
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
    # g++ 12 warns wrongly of its own std::string, in code that joins many texts (GCC bugs 105329, 105562, 105651).
    set(of_its_own -Wno-restrict -Wno-maybe-uninitialized)
    if(CMAKE_UNITY_BUILD)  # a file with options of its own would leave its unit
      target_compile_options(${target} PRIVATE ${of_its_own} -Wno-stringop-overflow)
    else()
      set(texts ${ARGN})
      list(FILTER texts INCLUDE REGEX "/src/(chat|grammar)/")
      set_source_files_properties(${texts} PROPERTIES COMPILE_OPTIONS "${of_its_own}")
    endif()
  endif()
endfunction()
