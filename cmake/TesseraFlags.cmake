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

  # The one baseline for x86-64; ARMv8 is the compiler's default. Kernels for more add theirs (TesseraKernels.cmake).
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(${target} PRIVATE -march=x86-64-v2)
  endif()

  # Static: hidden, so that a host's shared library does not re-export us. Shared: the version script chooses, and the
  # public headers need no export macro.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(script ${PROJECT_SOURCE_DIR}/cmake/tessera.map)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
  else()
    target_compile_options(${target} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
  endif()
endfunction()
