// Kernels that measure the highest rate of matrix products that a core reaches. They multiply bf16 numbers (f32, if there are no bf16
// instructions) that lie in registers and the first-level cache, so memory does not limit them. This file is compiled for the baseline;
// each function names its instruction set by an attribute.
#include <array>

#include "measure/limits.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tessera::bench {

namespace {

constexpr std::size_t kChains = 12;  // independent accumulators: more than (latency times instructions a cycle) of any processor

template <class T>
void keep(T& value) noexcept {
  __asm__ volatile("" : : "m"(value) : "memory");
}

using Quad = float __attribute__((vector_size(16)));

// The kernel for any processor: multiply-add, which is two instructions if the baseline has no FMA.
float run_baseline(std::uint64_t rounds) noexcept {
  Quad chains[kChains] = {}, factor = {0.5f, 0.5f, 0.5f, 0.5f}, term = {1, 1, 1, 1};
  __asm__ volatile("" : "+m"(factor), "+m"(term));
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
  }
  keep(chains);
  return chains[0][0];
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) float run_avx2(std::uint64_t rounds) noexcept {
  __m256 chains[kChains] = {}, factor = _mm256_set1_ps(0.5f), term = _mm256_set1_ps(1.0f);
  __asm__ volatile("" : "+m"(factor), "+m"(term));
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) chains[i] = _mm256_fmadd_ps(chains[i], factor, term);
  }
  keep(chains);
  return chains[0][0];
}

__attribute__((target("avx512f"))) float run_avx512(std::uint64_t rounds) noexcept {
  __m512 chains[kChains] = {}, factor = _mm512_set1_ps(0.5f), term = _mm512_set1_ps(1.0f);
  __asm__ volatile("" : "+m"(factor), "+m"(term));
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) chains[i] = _mm512_fmadd_ps(chains[i], factor, term);
  }
  keep(chains);
  return chains[0][0];
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) float run_avx512_bf16(std::uint64_t rounds) noexcept {
  __m512 chains[kChains] = {};
  __m512i bits = _mm512_set1_epi32(0x3a803a80);  // pairs of 2^-10
  __asm__ volatile("" : "+m"(bits));
  const __m512bh pairs = (__m512bh)bits;
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) chains[i] = _mm512_dpbf16_ps(chains[i], pairs, pairs);
  }
  keep(chains);
  return chains[0][0];
}

// The tile configuration of palette 1 (Intel SDM vol. 1, 18.3): rows and bytes a row of the eight tiles.
struct TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr std::size_t kTileBytes = 1024, kDepth = 4;  // the operands of kDepth steps take 16 KiB, which fit the first-level cache

// Multiplies blocks of 2 x 2 tiles, as the engine's matrix products do: four tile loads for four tile products.
__attribute__((target("amx-tile,amx-bf16"))) float run_amx(std::uint64_t rounds) noexcept {
  alignas(64) TileConfig config;
  alignas(64) std::array<std::uint16_t, 4 * kDepth * kTileBytes / 2> operands;
  operands.fill(0x3a80);  // 2^-10
  alignas(64) float out[kTileBytes / sizeof(float)];
  // Marks all of `config` as used: g++ 12 assumes that _tile_loadconfig() reads only 8 bytes of it.
  __asm__ volatile("" : : "m"(config), "m"(operands) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint16_t* at = operands.data();
    for (std::size_t step = 0; step < kDepth; ++step, at += 4 * kTileBytes / 2) {
      _tile_loadd(4, at, 64);
      _tile_loadd(5, at + kTileBytes / 2, 64);
      _tile_loadd(6, at + 2 * (kTileBytes / 2), 64);
      _tile_loadd(7, at + 3 * (kTileBytes / 2), 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, out, 64);
  _tile_release();
  keep(out);
  return out[0];
}

// Asks Linux for permission to use AMX's tiles, which a process needs before their first use (Documentation/arch/x86/xstate.rst). Returns
// whether AMX can be used: the processor has it with bf16, and Linux has given permission.
bool has_amx() noexcept {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool bf16 = (d >> 22 & 1) != 0, tile = (d >> 24 & 1) != 0;
  return bf16 && tile && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#endif

MatrixKernel choose() noexcept {
#if defined(__x86_64__)
  if (has_amx()) return {"AMX bf16", kDepth * 4.0 * (16 * 16 * 32 * 2), run_amx};
  if (__builtin_cpu_supports("avx512bf16")) return {"AVX-512 bf16", kChains * 16 * 4.0, run_avx512_bf16};
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512 f32 FMA", kChains * 16 * 2.0, run_avx512};
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return {"AVX2 f32 FMA", kChains * 8 * 2.0, run_avx2};
#endif
  return {"f32 multiply-add", kChains * 4 * 2.0, run_baseline};
}

}  // namespace

const MatrixKernel& matrix_kernel() noexcept {
  static const MatrixKernel kernel = choose();
  return kernel;
}

}  // namespace tessera::bench
