// The arithmetic of family bf16-pairs, the products of BF16 weights on CPUs with the instruction VDPBF16PS (docs/reference/numerics.md).
// An output is one chain of additions, over pairs of k: 0 and 1, 2 and 3, ... For each pair the chain first adds the product (weight
// times activation) at the odd k, and then the product at the even k. Denormals are zeros. Intel's manual (volume 2, operation of
// VDPBF16PS) defines the instruction like this, and Zen 4 computes the same. Instruction sets without VDPBF16PS do not have the family.
#pragma once

#include "cpu/kernels/simd/simd.hpp"

#if defined(__AVX512BF16__)

namespace tessera::cpu::TESSERA_ISA {

// Adds to each lane of `acc` the products for a pair of k, and returns the sums. `w`: each lane has two weights of its output, as bf16
// (the weight at the even k in the lower half). `x`: the row's two activations in the same order; all lanes use them.
TESSERA_INLINE F32x16 dot_pairs(F32x16 acc, U32x16 w, std::uint32_t x) {
  return {{_mm512_dpbf16_ps(acc.r[0], (__m512bh)w.r[0], (__m512bh)broadcast(x).r[0])}};
}

// Returns whether this machine's VDPBF16PS computes exactly what the family defines. If not, the family is not used. The family defines two
// fused multiply-adds, the first at the odd k and the second at the even k. Denormal operands and results become zeros. A result counts
// as denormal if it is denormal after rounding.
[[gnu::noinline]] static bool pairs_are_as_written() noexcept {
  struct Case {
    float acc;
    std::uint16_t x[2], w[2];  // [0]: at the even k, [1]: at the odd k
    float result;
  };
  constexpr std::uint16_t kOne = 0x3f80, kMinusOne = 0xbf80, kHalfUnit = 0x3380, kTiny = 0x0d80;  // 1, -1, 2^-24, 2^-100
  constexpr std::uint16_t k2p28 = 0x3180, k2p30 = 0x3080, kMinus2p51 = 0xa600;                    // 2^-28, 2^-30, -2^-51
  constexpr Case kCases[] = {
      {1.0f, {kMinusOne, kHalfUnit}, {kOne, kOne}, 0.0f},      // 1 + 2^-24 rounds to 1 (ties to even); 1 - 1 is 0
      {1.0f, {kHalfUnit, kMinusOne}, {kOne, kOne}, 0x1p-24f},  // 1 - 1 is 0; 0 + 2^-24
      {0.0f, {kTiny, 0}, {kHalfUnit, 0}, 0x1p-124f},
      {0.0f, {kTiny, 0}, {k2p28, 0}, 0.0f},                    // 2^-128, a denormal
      {0x1p-127f, {0, 0}, {kOne, kOne}, 0.0f},
      {0x1p-120f, {kTiny, 0}, {k2p30, 0}, 0x1p-120f + 0x1p-130f},  // a product that alone would be a denormal
      {0x1p-126f, {kTiny, 0}, {kMinus2p51, 0}, 0x1p-126f},         // 2^-126 - 2^-151 rounds up to 2^-126, which is normal
  };
  for (const Case& one : kCases) {
    std::uint32_t x, w;
    __builtin_memcpy(&x, one.x, sizeof x);
    __builtin_memcpy(&w, one.w, sizeof w);
    __asm__ volatile("" : "+r"(x), "+r"(w));
    float lanes[16];
    store(lanes, dot_pairs(broadcast(one.acc), broadcast(w), x));
    if (__builtin_bit_cast(std::uint32_t, lanes[0]) != __builtin_bit_cast(std::uint32_t, one.result)) return false;
  }
  return true;
}

}  // namespace tessera::cpu::TESSERA_ISA

#endif
