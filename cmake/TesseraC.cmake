# The C ABI: include/tessera.h over capi/*.cpp. tessera-c is a shared library that holds all of tessera and exports
# tessera_* alone; tessera-c-static is the same functions for a program that links tessera statically.
option(TESSERA_BUILD_C "Build the C library, libtessera-c" ${PROJECT_IS_TOP_LEVEL})
if(NOT TESSERA_BUILD_C)
  return()
endif()

file(GLOB TESSERA_C_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/capi/*.cpp)
add_library(tessera_c_objects OBJECT ${TESSERA_C_SOURCES})
target_compile_features(tessera_c_objects PRIVATE cxx_std_20)
target_include_directories(tessera_c_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
tessera_library_flags(tessera_c_objects)
target_compile_definitions(tessera_c_objects PRIVATE TESSERA_C_BUILD)
# Half of a file's time are its headers. Nothing here computes: optimising it more would take as long again.
set_target_properties(tessera_c_objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
target_compile_options(tessera_c_objects PRIVATE $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tessera_c_objects PRIVATE -Wno-subobject-linkage)  # a unit includes the files, and so looks like a header
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)  # as in TesseraFlags.cmake
    target_compile_options(tessera_c_objects PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
  endif()
endif()

add_library(tessera-c SHARED $<TARGET_OBJECTS:tessera_c_objects>)
add_library(tessera-c-static STATIC $<TARGET_OBJECTS:tessera_c_objects>)
add_library(tessera::c ALIAS tessera-c)
add_library(tessera::c-static ALIAS tessera-c-static)
set_target_properties(tessera-c PROPERTIES EXPORT_NAME c)
set_target_properties(tessera-c-static PROPERTIES EXPORT_NAME c-static)
foreach(library tessera-c tessera-c-static)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_compile_definitions(tessera-c-static INTERFACE TESSERA_C_STATIC)
target_link_libraries(tessera-c-static PUBLIC tessera)

# The C++ library goes into the shared one: as an archive, or, if it is a shared library itself, as its objects.
get_target_property(type tessera TYPE)
if(type STREQUAL "SHARED_LIBRARY")
  get_property(sets GLOBAL PROPERTY TESSERA_KERNEL_SETS)
  target_sources(tessera-c PRIVATE $<TARGET_OBJECTS:tessera>)
  foreach(set ${sets})
    target_sources(tessera-c PRIVATE $<TARGET_OBJECTS:tessera_kernels_${set}>)
  endforeach()
  target_link_libraries(tessera-c PRIVATE ${TESSERA_DEPENDENCIES} ${CMAKE_DL_LIBS})
else()
  target_link_libraries(tessera-c PRIVATE tessera)
endif()
set(script ${PROJECT_SOURCE_DIR}/cmake/tessera_c.map)
target_link_options(tessera-c PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
# The ABI's major version, as TESSERA_ABI_VERSION of the header has it.
file(STRINGS ${PROJECT_SOURCE_DIR}/include/tessera.h abi REGEX "^#define TESSERA_ABI_VERSION [0-9]+")
string(REGEX REPLACE "^#define TESSERA_ABI_VERSION ([0-9]+).*" "\\1" abi "${abi}")
set_target_properties(tessera-c PROPERTIES LINK_DEPENDS ${script} SOVERSION ${abi} VERSION ${abi}.${PROJECT_VERSION})
