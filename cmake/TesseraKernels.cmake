# The CPU kernels: src/cpu/kernels compiled once for each instruction set, in a namespace of that name, so that
# no two objects share a symbol (tests/checks/kernel_symbols.sh). src/cpu/kernels/amx has the kernels that use AMX tiles.
file(GLOB TESSERA_KERNEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/kernels/*.cpp ${PROJECT_SOURCE_DIR}/src/cpu/kernels/products/*.cpp)
file(GLOB TESSERA_AMX_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/kernels/amx/*.cpp)

# Kernels get this flag after the flags of the configuration, so that a debug build of a host answers in seconds, not in minutes.
set(TESSERA_KERNEL_OPTIMISATION -O3 CACHE STRING "How kernels are optimised in every configuration but Release")

# all: programs run as fast as they can on any machine. native: only the kernels for this machine, which compile in a third of the time.
set(TESSERA_KERNEL_SETS all CACHE STRING "Instruction sets with kernels: all; or a list, in which native is this machine's best one")
set(wanted_sets ${TESSERA_KERNEL_SETS})
if("native" IN_LIST wanted_sets)
  include(NativeKernelSet)
  tessera_native_kernel_set(native_sets)
  list(REMOVE_ITEM wanted_sets native)
  list(APPEND wanted_sets ${native_sets})
endif()
set(known_sets "")
set(built_sets "")

# tessera_kernels(SET SOURCES FLAGS...): adds the objects to the library, if the set is wanted.
function(tessera_kernels set sources)
  list(APPEND known_sets ${set})
  set(known_sets ${known_sets} PARENT_SCOPE)
  if(NOT wanted_sets STREQUAL "all" AND NOT set IN_LIST wanted_sets)
    return()
  endif()
  set(built_sets ${built_sets} ${set} PARENT_SCOPE)
  set(objects tessera_kernels_${set})
  add_library(${objects} OBJECT ${${sources}})
  if(CMAKE_UNITY_BUILD AND TESSERA_UNITS AND TESSERA_KERNEL_OPTIMISATION MATCHES "^-(O0|fsyntax-only)$")
    set_target_properties(${objects} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  else()  # compiling an optimised kernel takes longer than reading its headers
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  tessera_library_flags(${objects})
  # -falign-functions: each function begins on a cache line, so that a loop's speed does not depend on the code that the linker puts in
  # front of it (a tenth of a token's time on Zen 3).
  # -fno-exceptions -fno-rtti: kernels throw nothing, and the compiler makes no tables for them that two sets would share.
  # -Wno-...: g++ 12 warns of undefined operands in its own intrinsics.
  target_compile_options(${objects} PRIVATE "$<$<NOT:$<CONFIG:Release>>:${TESSERA_KERNEL_OPTIMISATION}>" -fno-exceptions -fno-rtti -fvisibility=hidden
    -falign-functions=64 "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>" ${ARGN})
  target_compile_definitions(${objects} PRIVATE TESSERA_ISA=${set} TESSERA_ISA_${set})
  target_sources(tessera PRIVATE $<TARGET_OBJECTS:${objects}>)
  set_property(GLOBAL APPEND PROPERTY TESSERA_KERNEL_SETS ${set})
endfunction()

# g++ for Windows aligns the stack to 16 bytes, but assumes 32 and 64 (GCC bug 54412). So the assembler turns aligned moves into unaligned
# ones. g++ also cannot write unwind tables for registers 16 to 31 (GCC bug 65782). The kernels throw nothing, and need no such tables.
set(windows_gcc "")
if(MINGW AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(windows_gcc -Wa,-muse-unaligned-vector-move -fno-asynchronous-unwind-tables)
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(avx2 -mavx2 -mfma -mf16c ${windows_gcc})
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
  set(avx512_vnni ${avx512} -mavx512vnni -mavx512bf16 -mavx512vbmi)
  # Sanitizers check the kernels of three sets, and one of the three also for undefined behaviour. With a sanitizer the other sets would
  # take minutes to compile, because they have many small vectors.
  set(unsanitized -fno-sanitize=all)
  set(addresses_only -fno-sanitize=undefined)
  set(addresses_and_values -fno-sanitize=pointer-overflow)
  tessera_kernels(baseline TESSERA_KERNEL_SOURCES ${unsanitized})
  tessera_kernels(avx2 TESSERA_KERNEL_SOURCES ${avx2} ${addresses_and_values})
  tessera_kernels(avx2_vnni TESSERA_KERNEL_SOURCES ${avx2} -mavxvnni ${unsanitized})
  tessera_kernels(avx512 TESSERA_KERNEL_SOURCES ${avx512} ${unsanitized})
  tessera_kernels(avx512_vnni TESSERA_KERNEL_SOURCES ${avx512_vnni} ${addresses_only})
  tessera_kernels(amx TESSERA_AMX_SOURCES ${avx512_vnni} -mamx-tile -mamx-int8 -mamx-bf16 ${addresses_only})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  tessera_kernels(neon TESSERA_KERNEL_SOURCES)
  tessera_kernels(neon_dotprod TESSERA_KERNEL_SOURCES -march=armv8.2-a+dotprod)
else()
  message(FATAL_ERROR "tessera has kernels for x86-64 and ARMv8, not for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

foreach(set ${wanted_sets})
  if(NOT set STREQUAL "all" AND NOT set IN_LIST known_sets)
    message(FATAL_ERROR "TESSERA_KERNEL_SETS has ${set}; expected all, or some of native, ${known_sets}")
  endif()
endforeach()
if(built_sets STREQUAL "")
  message(FATAL_ERROR "TESSERA_KERNEL_SETS names none of ${known_sets}")
endif()
if("amx" IN_LIST built_sets AND NOT "avx512_vnni" IN_LIST built_sets)
  message(FATAL_ERROR "TESSERA_KERNEL_SETS: amx needs avx512_vnni, which does what tiles do not")
endif()
list(JOIN built_sets ", " text)
message(STATUS "tessera: kernels for ${text}")

# Writes a source for src/cpu/instruction_sets.cpp: has_kernels() says which sets are in the library, and add_kernels() of each other set
# does nothing.
set(cases "")
set(absent "")
foreach(set ${known_sets})
  if(set IN_LIST built_sets)
    string(APPEND cases "    case InstructionSet::${set}:\n")
  else()
    string(APPEND absent "namespace ${set} { void add_kernels(Kernels&) noexcept {} }\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/kernel_sets.cpp @ONLY CONTENT [[
#include "cpu/instruction_sets.hpp"

namespace tessera::cpu {

@absent@
bool has_kernels(InstructionSet set) noexcept {
  switch (set) {
@cases@      return true;
    default: return false;
  }
}

}  // namespace tessera::cpu
]])
target_sources(tessera PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/kernel_sets.cpp)
