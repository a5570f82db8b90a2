# Libraries and functions that the command-line programs of examples, tools and bench share.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

# Compiled once for all programs.
add_library(tessera_completion STATIC ${PROJECT_SOURCE_DIR}/tools/shared/completion.cpp)
target_link_libraries(tessera_completion PRIVATE tessera_flags fmt::fmt CLI11::CLI11)
target_compile_features(tessera_completion PRIVATE cxx_std_20)
target_compile_options(tessera_completion PRIVATE "$<IF:$<CONFIG:Release>,-O1,-O0>")

# Finds models by name, for all programs that read a model.
add_library(tessera_model_place STATIC ${PROJECT_SOURCE_DIR}/tools/shared/model_place.cpp)
target_compile_features(tessera_model_place PRIVATE cxx_std_20)
target_include_directories(tessera_model_place PRIVATE ${PROJECT_SOURCE_DIR}/tools/shared)
target_link_libraries(tessera_model_place PRIVATE tessera::tessera tessera_flags fmt::fmt)

add_library(tessera_program INTERFACE)
target_include_directories(tessera_program INTERFACE ${PROJECT_SOURCE_DIR}/tools/shared)
target_link_libraries(tessera_program INTERFACE tessera_model_place tessera::tessera tessera_completion tessera_flags fmt::fmt CLI11::CLI11
  nlohmann_json::nlohmann_json Threads::Threads)
target_compile_options(tessera_program INTERFACE -Wconversion)
set(TESSERA_PROGRAM_OPTIMISATION "" CACHE STRING "How programs are optimised, as -O0; empty: as the library, and their options little")
# tessera_program_optimisation(TARGET): for a program or a library of one.
function(tessera_program_optimisation target)
  target_compile_options(${target} PRIVATE ${TESSERA_PROGRAM_OPTIMISATION})
  if(TESSERA_PROGRAM_OPTIMISATION AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # with -O1, g++ warns wrongly of optionals that are not set
  endif()
endfunction()

# Implements tools/shared/system/program.hpp for this system.
set(sources "")
foreach(folder ${TESSERA_SYSTEM_FOLDERS})
  file(GLOB of_system CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/shared/system/${folder}/*.cpp)
  list(APPEND sources ${of_system})
endforeach()
add_library(tessera_program_system STATIC ${sources})
target_compile_features(tessera_program_system PRIVATE cxx_std_20)
target_include_directories(tessera_program_system PRIVATE ${PROJECT_SOURCE_DIR}/tools/shared)
target_link_libraries(tessera_program_system PRIVATE tessera_flags)
target_link_libraries(tessera_program INTERFACE tessera_program_system)

# tessera_program_system(NAME): adds the folder of this system in system/ beside the program's CMakeLists.txt.
function(tessera_program_system name)
  foreach(folder ${TESSERA_SYSTEM_FOLDERS})
    file(GLOB sources CONFIGURE_DEPENDS system/${folder}/*.cpp)
    target_sources(${name} PRIVATE ${sources})
  endforeach()
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# tessera_program(NAME SOURCES...): adds a program that is installed.
function(tessera_program name)
  tessera_tool(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY TESSERA_PROGRAMS ${name})
endfunction()

# tessera_tool(NAME SOURCES...): adds a program that stays in the build tree.
function(tessera_tool name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE tessera_program)
  tessera_program_optimisation(${name})
  # Files that read options are hardly optimised: they run once, and optimising CLI11's templates takes long. CMake leaves these files out
  # of units, because they have compile options of their own.
  if(NOT TESSERA_PROGRAM_OPTIMISATION)
    set(options ${ARGN})
    list(FILTER options INCLUDE REGEX "(main|options|_command)\\.cpp$")
    set_source_files_properties(${options} PROPERTIES COMPILE_OPTIONS "$<IF:$<CONFIG:Release>,-O1,-O0>")
  endif()
endfunction()
