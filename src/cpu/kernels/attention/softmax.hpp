// The arithmetic of the softmax in attention, with vectors, between the two matrix products: the maximum of scores, exponentials, and
// sums of 16 lanes.
#pragma once

#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

TESSERA_INLINE float largest(F32x16 a) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(a.r[0]);
#else
  float lanes[16];
  store(lanes, a);
  TESSERA_UNROLL
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  }
  return lanes[0];
#endif
}

// Returns the sum of the lanes, added as 8 + 8, 4 + 4, 2 + 2, 1 + 1.
TESSERA_INLINE float tree_sum(F32x16 a) {
#if defined(__AVX512F__)
  const __m256 eight = _mm512_castps512_ps256(a.r[0]) + _mm512_extractf32x8_ps(a.r[0], 1);
  const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
  const __m128 two = four + _mm_movehl_ps(four, four);
  return two[0] + two[1];
#else
  float lanes[16];
  store(lanes, a);
  TESSERA_UNROLL
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
#endif
}

// Returns a mask: all ones in lanes [first, last).
TESSERA_INLINE U32x16 lanes_between(std::size_t first, std::size_t last) {
  alignas(64) static constexpr std::uint32_t kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const U32x16 lane = load<U32x16>(kLane);
  const U32x16 before_last = greater(broadcast(static_cast<std::uint32_t>(last)), lane);
  return select(greater(broadcast(static_cast<std::uint32_t>(first)), lane), broadcast(0u), before_last);
}

TESSERA_INLINE F32x16 keep(U32x16 mask, F32x16 a) { return as<F32x16>(mask & as<U32x16>(a)); }

// Returns 2^x for x <= 0, the exponential by which attention computes weights (docs/reference/numerics.md, "Attention"). Error: at most 2
// ulp. If x is below -125, the result is 0, so that no result is a denormal number. Method: x = n + r with an integer n and |r| <= 1/2;
// then 2^x = 2^n (1 + r P(r)), where P is a near-minimax polynomial of degree 4, computed by fused multiply-adds.
TESSERA_INLINE F32x16 exp2_negative(F32x16 x) {
  const F32x16 round = broadcast(0x1.8p23f);  // x + round has x, rounded to an integer, in its low bits
  const F32x16 shifted = x + round;
  const F32x16 n = shifted - round;
  const F32x16 r = x - n;
  F32x16 p = broadcast(0x1.5bba10p-10f);
  p = fma(p, r, broadcast(0x1.3cea88p-7f));
  p = fma(p, r, broadcast(0x1.c6b752p-5f));
  p = fma(p, r, broadcast(0x1.ebf9bcp-3f));
  p = fma(p, r, broadcast(0x1.62e42ap-1f));
  p = fma(p, r, broadcast(1.0f));
#if defined(__AVX512F__)
  const __mmask16 not_small = _mm512_cmp_ps_mask(x.r[0], _mm512_set1_ps(-125.0f), _CMP_NLT_UQ);  // true for NaN too
  return {{_mm512_maskz_scalef_ps(not_small, p.r[0], n.r[0])}};
#else
  const F32x16 scaled = as<F32x16>(as<U32x16>(p) + (as<U32x16>(shifted) << 23));  // the shift drops the bits above n
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA {
    const native::I small = x.r[i] < -125.0f, nan = x.r[i] != x.r[i];
    return (native::F)(((native::I)scaled.r[i] & ~small) | nan);
  });
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA
