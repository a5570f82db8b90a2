// The few functions and macros in which kernels are written, so that the same sources run on a GPU (nvcc) and in the tests' emulator. The
// emulator (<emulator/device.hpp> in tests/cuda/emulator) is compiled by a host compiler and runs a block's threads as fibers.
//
// Blocks are one-dimensional (threadIdx.x); grids have up to three dimensions. Every kernel takes one plain struct by value. Floating-point
// code is compiled with -fmad=false (-ffp-contract=off), so products and sums are fused only where the code calls fma(). Code that does not
// use the hardware's approximate functions has the same bits on a GPU and in the emulator.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

#define TESSERA_DEVICE __device__ __forceinline__
#define TESSERA_HOST_DEVICE __host__ __device__ __forceinline__
#define TESSERA_SHARED __shared__  // shared memory of a fixed size, not initialised
// TESSERA_KERNEL(add, 256, AddArgs) { ... args.x[blockIdx.x] ... }: a kernel of at most 256 threads a block.
#define TESSERA_KERNEL(name, threads, Args) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Args args)

namespace tessera::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

// The block's dynamic shared memory, 16-byte aligned.
TESSERA_DEVICE void* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char tessera_dynamic_shared[];
  return tessera_dynamic_shared;
}

TESSERA_DEVICE void sync_block() { __syncthreads(); }
TESSERA_DEVICE void sync_warp() { __syncwarp(); }

// Exchange a value between lanes. All 32 lanes of the warp must call these functions.
template <class T>
TESSERA_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
template <class T>
TESSERA_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <class T>
TESSERA_DEVICE T shuffle_up(T value, int distance) {  // lanes below `distance` keep their own value
  return __shfl_up_sync(kAllLanes, value, distance);
}
TESSERA_DEVICE unsigned ballot(bool condition) { return __ballot_sync(kAllLanes, condition); }

TESSERA_DEVICE unsigned ones_in(unsigned bits) { return static_cast<unsigned>(__popc(bits)); }

TESSERA_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }

// Converts IEEE binary16 to f32, exactly.
TESSERA_DEVICE float half_to_float(std::uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

// Rounds to IEEE binary16, to nearest, ties to even. Values from 65520 on become infinity.
TESSERA_DEVICE std::uint16_t float_to_half(float value) {
  std::uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}

// Picks four of eight bytes. The eight bytes are numbered from the lowest byte of `low` (0) to the highest byte of `high` (7). Byte i of
// the result is the byte whose number is hex digit i of `selector`, where digit 0 is the lowest.
TESSERA_DEVICE std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  return __byte_perm(low, high, selector);
}

// Adds to a number in shared or global memory, and returns the old value.
TESSERA_DEVICE std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t value) { return atomicAdd(at, value); }
TESSERA_DEVICE std::uint64_t atomic_add(std::uint64_t* at, std::uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}
TESSERA_DEVICE std::uint64_t atomic_max(std::uint64_t* at, std::uint64_t value) {
  return atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}

struct Words4 {
  std::uint32_t x, y, z, w;
};
// Loads 16 bytes that are not read again soon, without keeping them in L1. The address must be a multiple of 16, and the memory read-only.
TESSERA_DEVICE Words4 load_streaming(const void* at) {
  Words4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

}  // namespace tessera::cuda

#else
#include <emulator/device.hpp>
#endif

namespace tessera::cuda {

inline constexpr unsigned kWarp = 32;

TESSERA_DEVICE unsigned lane_id() { return threadIdx.x % kWarp; }
TESSERA_DEVICE unsigned warp_id() { return threadIdx.x / kWarp; }

// Returns the sum of the lanes' values in every lane. The order of additions is fixed: lanes 16 apart, then 8, 4, 2, 1.
TESSERA_DEVICE float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value = value + shuffle_xor(value, distance);
  return value;
}
TESSERA_DEVICE float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = shuffle_xor(value, distance);
    value = other > value ? other : value;
  }
  return value;
}

}  // namespace tessera::cuda
