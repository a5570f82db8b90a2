// The vector arithmetic of attention between its products: maxima, exponentials, sums by 16 lanes, rounding to bf16.
#pragma once

#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

// a > b ? a : b: a NaN in `a` is passed over.
TESSERA_INLINE F32x16 larger(F32x16 a, F32x16 b) {
#if defined(__AVX512F__)
  return {{_mm512_max_ps(a.r[0], b.r[0])}};
#else
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA {
    const native::I mask = a.r[i] > b.r[i];
    return (native::F)(((native::I)a.r[i] & mask) | ((native::I)b.r[i] & ~mask));
  });
#endif
}

TESSERA_INLINE float largest(F32x16 a) {
  float lanes[16];
  store(lanes, a);
  TESSERA_UNROLL
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  }
  return lanes[0];
}

// 8 + 8, 4 + 4, 2 + 2, 1 + 1.
TESSERA_INLINE float tree_sum(F32x16 a) {
  float lanes[16];
  store(lanes, a);
  TESSERA_UNROLL
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Lanes [first, last) all ones.
TESSERA_INLINE U32x16 lanes_between(std::size_t first, std::size_t last) {
  std::uint32_t mask[16];
  for (std::size_t i = 0; i < 16; ++i) mask[i] = i >= first && i < last ? ~0u : 0u;
  return load<U32x16>(mask);
}

TESSERA_INLINE F32x16 keep(U32x16 mask, F32x16 a) { return as<F32x16>(mask & as<U32x16>(a)); }

// math::exp of numbers up to 0, bit for bit: there its result is 0 or normal, so that 2^n can be put in at once.
TESSERA_INLINE F32x16 exp_negative(F32x16 x) {
  const F32x16 round = broadcast(0x1.8p23f);
  const F32x16 shifted = x * broadcast(0x1.715476p+0f) + round;
  const F32x16 n = shifted - round;
  const F32x16 r = (x - n * broadcast(0x1.63p-1f)) - n * broadcast(-0x1.bd0106p-13f);
  F32x16 p = broadcast(0x1.9f0896p-13f);
  p = p * r + broadcast(0x1.6d8d06p-10f);
  p = p * r + broadcast(0x1.111270p-7f);
  p = p * r + broadcast(0x1.55548ep-5f);
  p = p * r + broadcast(0x1.555554p-3f);
  p = p * r + broadcast(0.5f);
  p = (p * r) * r + r + broadcast(1.0f);
#if defined(__AVX512F__)
  const __mmask16 not_small = _mm512_cmp_ps_mask(x.r[0], _mm512_set1_ps(-87.25f), _CMP_NLT_UQ);  // or NaN
  return {{_mm512_maskz_scalef_ps(not_small, p.r[0], n.r[0])}};
#else
  const F32x16 scaled = as<F32x16>(as<U32x16>(p) + (as<U32x16>(shifted) << 23));  // the bits above n's leave
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA {
    const native::I small = x.r[i] < -87.25f, nan = x.r[i] != x.r[i];
    return (native::F)(((native::I)scaled.r[i] & ~small) | nan);
  });
#endif
}

// 32 numbers as bf16, one after another.
TESSERA_INLINE void store_high_parts(std::byte* to, F32x16 a, F32x16 b) {
#if defined(__AVX512BF16__)
  const __m512bh both = _mm512_cvtne2ps_pbh(b.r[0], a.r[0]);
  __builtin_memcpy(to, &both, 64);
#else
  store_u16(to, as<I32x16>(to_bf16(a) >> 16));
  store_u16(to + 32, as<I32x16>(to_bf16(b) >> 16));
#endif
}
TESSERA_INLINE void store_both_parts(std::byte* high, std::byte* low, F32x16 a, F32x16 b) {
#if defined(__AVX512BF16__)
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b.r[0], a.r[0]);
  __builtin_memcpy(high, &both, 64);
  const __m512i high_a = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(both)), 16);
  const __m512i high_b = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1)), 16);
  const __m512bh rest = _mm512_cvtne2ps_pbh(b.r[0] - (__m512)high_b, a.r[0] - (__m512)high_a);
  __builtin_memcpy(low, &rest, 64);
#else
  const U32x16 high_a = to_bf16(a), high_b = to_bf16(b);
  store_u16(high, as<I32x16>(high_a >> 16));
  store_u16(high + 32, as<I32x16>(high_b >> 16));
  store_high_parts(low, a - as<F32x16>(high_a), b - as<F32x16>(high_b));
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA
