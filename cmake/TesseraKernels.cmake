# The CPU kernels: src/cpu/kernels/*.cpp compiled once for each instruction set, in a namespace of that name, so that
# no two objects share a symbol (tests/checks/kernel_symbols.sh). src/cpu/kernels/amx holds what only tiles can do.
file(GLOB TESSERA_KERNEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/kernels/*.cpp)
file(GLOB TESSERA_AMX_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/kernels/amx/*.cpp)

# tessera_kernels(SET SOURCES FLAGS...): adds the objects to the library.
function(tessera_kernels set sources)
  set(objects tessera_kernels_${set})
  add_library(${objects} OBJECT ${${sources}})
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  tessera_library_flags(${objects})
  # Plain functions over plain memory: nothing throws, and no table of the compiler's own to share. g++ 12 warns of its
  # own intrinsics' undefined operands.
  target_compile_options(${objects} PRIVATE -fno-exceptions -fno-rtti -fvisibility=hidden
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>" ${ARGN})
  target_compile_definitions(${objects} PRIVATE TESSERA_ISA=${set} TESSERA_ISA_${set})
  target_sources(tessera PRIVATE $<TARGET_OBJECTS:${objects}>)
  set_property(GLOBAL APPEND PROPERTY TESSERA_KERNEL_SETS ${set})
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
  set(avx512_vnni ${avx512} -mavx512vnni -mavx512bf16)
  # Sanitizers look at the sources in three sets, at what is undefined in one. The rest would take them minutes to compile:
  # many small vectors. What they check at each load beside AddressSanitizer takes five times as long as all the rest.
  set(unsanitized -fno-sanitize=all)
  set(addresses_only -fno-sanitize=undefined)
  set(addresses_and_values -fno-sanitize=alignment,null,object-size,pointer-overflow)
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
