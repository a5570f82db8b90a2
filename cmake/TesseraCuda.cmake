# The CUDA backend: compiles the .cpp files of cuda/ into the library, and embeds the .cu files of cuda/kernels as fat binaries. Links
# neither the driver nor cuBLAS: the library looks for both when an engine with CUDA is made. Sets TESSERA_HAS_CUDA.
if(PROJECT_IS_TOP_LEVEL)
  set(default AUTO)
else()
  set(default OFF)
endif()
set(TESSERA_CUDA ${default} CACHE STRING "The CUDA backend: AUTO (if a toolkit of 12.0 or newer is there), ON, OFF")
set_property(CACHE TESSERA_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TESSERA_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TESSERA_CUDA is ${TESSERA_CUDA}; expected AUTO, ON or OFF")
endif()

set(TESSERA_HAS_CUDA OFF)
if(NOT TESSERA_CUDA STREQUAL "OFF" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$|^(aarch64|arm64)$" AND NOT CMAKE_CROSSCOMPILING)
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(TESSERA_HAS_CUDA ON)
  elseif(TESSERA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TESSERA_CUDA is ON, but there is no CUDA toolkit of version 12.0 or newer (nvcc)")
  endif()
endif()
message(STATUS "tessera: CUDA backend ${TESSERA_HAS_CUDA}")

target_include_directories(tessera PRIVATE ${PROJECT_SOURCE_DIR})  # for cuda/, or for cuda/absent if there is no CUDA
if(NOT TESSERA_HAS_CUDA)
  target_sources(tessera PRIVATE ${PROJECT_SOURCE_DIR}/cuda/absent/make_backend.cpp)
  return()
endif()

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/*.cpp)
list(FILTER sources EXCLUDE REGEX "/cuda/absent/")
target_sources(tessera PRIVATE ${sources})
target_include_directories(tessera SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})

set(TESSERA_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities that kernels are compiled for; of the last, PTX for newer ones too")
set(TESSERA_CUDA_KERNELS ON CACHE BOOL "Compile the kernels; OFF: an engine finds none, but on the emulator of the tests")
set(TESSERA_CUDA_OPTIMISATION "" CACHE STRING
  "How kernels are optimised, as -O0: then only PTX, which compiles in a sixth of the time; empty: -O3, and machine code too")
set(nvcc_flags -std=c++20 -fmad=false --expt-relaxed-constexpr -Werror all-warnings -Xfatbin -compress-all)
if(TESSERA_CUDA_OPTIMISATION)
  list(APPEND nvcc_flags -Xcicc ${TESSERA_CUDA_OPTIMISATION})
else()
  list(APPEND nvcc_flags -O3)
  foreach(capability ${TESSERA_CUDA_ARCHITECTURES})
    list(APPEND nvcc_flags -gencode arch=compute_${capability},code=sm_${capability})
  endforeach()
endif()
list(GET TESSERA_CUDA_ARCHITECTURES -1 newest)
list(APPEND nvcc_flags -gencode arch=compute_${newest},code=compute_${newest})
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/kernels/*.cu)
set(declarations "")
set(entries "")
if(NOT TESSERA_CUDA_KERNELS)
  set(kernels "")
  set(entries "    {\"none\", reinterpret_cast<const unsigned char*>(\"\")},\n")
endif()
foreach(source ${kernels})
  get_filename_component(name ${source} NAME_WE)
  set(fatbin ${PROJECT_BINARY_DIR}/cuda/${name}.fatbin)
  add_custom_command(OUTPUT ${fatbin}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -fatbin ${nvcc_flags}
      -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
      -MD -MF ${fatbin}.d -MT ${fatbin} -o ${fatbin} ${source}
    DEPENDS ${source} DEPFILE ${fatbin}.d
    COMMENT "Compiling kernels ${name}.cu" VERBATIM)
  set_source_files_properties(${fatbin} PROPERTIES GENERATED TRUE)
  tessera_embed_file(tessera tessera_cuda_${name} ${fatbin})
  string(APPEND declarations "extern \"C\" const unsigned char tessera_cuda_${name}_begin[];\n")
  string(APPEND entries "    {\"${name}\", tessera_cuda_${name}_begin},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda/images.cpp @ONLY CONTENT [[
#include "cuda/driver/images.hpp"

@declarations@
namespace tessera::cuda {

namespace {

const Image kImages[] = {
@entries@};

}  // namespace

std::span<const Image> images() noexcept { return kImages; }

}  // namespace tessera::cuda
]])
target_sources(tessera PRIVATE ${PROJECT_BINARY_DIR}/cuda/images.cpp)
# Tests link some of these files without the others, so a build with tests does not join the files to units.
list(APPEND sources ${PROJECT_BINARY_DIR}/cuda/images.cpp)
if(TESSERA_UNITS AND NOT TESSERA_BUILD_TESTS)
  set_source_files_properties(${sources} PROPERTIES UNITY_GROUP cuda)
else()
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
