// The native registers of x86-64-v2 (SSE4.2), below simd.hpp. This set has no instructions for FMA and for converting F16; both are
// computed here, exactly.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tessera::cpu::TESSERA_ISA::native {

inline constexpr std::size_t kBytes = 16;
inline constexpr std::size_t kNames = 16;
inline constexpr bool kCentredBytes = true, kPairs = true, kWords = true;

using F = float __attribute__((vector_size(kBytes)));
using I = std::int32_t __attribute__((vector_size(kBytes)));
using U = std::uint32_t __attribute__((vector_size(kBytes)));
using B = std::uint8_t __attribute__((vector_size(kBytes)));
using I4 = std::int32_t __attribute__((vector_size(16)));

// Returns a * b + c as a double. fma() rounds this double to a float, because the set has no instruction for a fused multiply-add.
// The product is exact. If the sum is inexact, its last bit is made odd. Then rounding to a float gives the same result as a single
// rounding of the exact sum (Boldo and Melquiond 2008).
TESSERA_INLINE __m128d fused(__m128d a, __m128d b, __m128d c) {
  const __m128d product = _mm_mul_pd(a, b);
  const __m128d sum = _mm_add_pd(product, c);
  const __m128d part = _mm_sub_pd(sum, product);
  const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part));
  const __m128d zero = _mm_setzero_pd();
  const __m128d inexact = _mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero));  // false if the error is NaN
  const __m128i one = _mm_set1_epi64x(1);
  const __m128i bits = _mm_castpd_si128(sum);
  const __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);  // all ones if the last bit is 0
  const __m128i opposite = _mm_shuffle_epi32(_mm_srai_epi32(_mm_castpd_si128(_mm_xor_pd(error, sum)), 31), 0xf5);
  const __m128i step = _mm_and_si128(_mm_or_si128(opposite, one), _mm_and_si128(even, _mm_castpd_si128(inexact)));
  return _mm_castsi128_pd(_mm_add_epi64(bits, step));
}

TESSERA_INLINE F fma(F a, F b, F c) {
  const __m128 low = _mm_cvtpd_ps(fused(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c)));
  const __m128 high = _mm_cvtpd_ps(fused(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                                         _mm_cvtps_pd(_mm_movehl_ps(c, c))));
  return _mm_movelh_ps(low, high);
}
TESSERA_INLINE F larger(F a, F b) { return _mm_max_ps(a, b); }
TESSERA_INLINE F smaller(F a, F b) { return _mm_min_ps(a, b); }
TESSERA_INLINE I max(I a, I b) { return (I)_mm_max_epi32((__m128i)a, (__m128i)b); }
TESSERA_INLINE F to_float(I a) { return _mm_cvtepi32_ps((__m128i)a); }
TESSERA_INLINE I round(F a) { return (I)_mm_cvtps_epi32(a); }
TESSERA_INLINE I load_i16(const void* at) {
  return (I)_mm_cvtepi16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at)));
}
TESSERA_INLINE F f16_to_float(U half) {  // f16_to_f32 of core/float16.hpp
  const U magnitude = (half & 0x7fffu) << 13;
  const U special = (U)(magnitude >= 0x0f800000u) & 0x7f800000u;
  const U quiet = (U)(magnitude > 0x0f800000u) & 0x00400000u;
  const U tiny = (U)((F)(magnitude + 0x38800000u) - 0x1p-14f);
  const U is_tiny = (U)(magnitude < 0x00800000u);
  const U normal = magnitude + 0x38000000u;
  return (F)(((half & 0x8000u) << 16) | (tiny & is_tiny) | (normal & ~is_tiny) | special | quiet);
}
TESSERA_INLINE F load_f16(const void* at) {
  return f16_to_float((U)_mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at))));
}
TESSERA_INLINE void load_f16_pairs(const void* at, F& even, F& odd) {
  const U pairs = (U)_mm_loadu_si128(static_cast<const __m128i*>(at));
  even = f16_to_float(pairs & 0xffffu);
  odd = f16_to_float(pairs >> 16);
}
TESSERA_INLINE F unmixed(F a) { return a; }
TESSERA_INLINE void store_i8(void* to, I a) {
  const __m128i words = _mm_packs_epi32((__m128i)a, (__m128i)a);
  _mm_storeu_si32(to, _mm_packs_epi16(words, words));
}
TESSERA_INLINE void store_u16(void* to, I a) {
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packus_epi32((__m128i)a, (__m128i)a));
}
TESSERA_INLINE void store_past_caches(float* to, F a) { _mm_stream_ps(to, a); }
TESSERA_INLINE void fence_stores() { _mm_sfence(); }
template <class Op>
TESSERA_INLINE I4 reduce4(I a, I b, I c, I d, Op op) {
  const I ab = op((I)_mm_unpacklo_epi32((__m128i)a, (__m128i)b), (I)_mm_unpackhi_epi32((__m128i)a, (__m128i)b));
  const I cd = op((I)_mm_unpacklo_epi32((__m128i)c, (__m128i)d), (I)_mm_unpackhi_epi32((__m128i)c, (__m128i)d));
  return op((I)_mm_unpacklo_epi64((__m128i)ab, (__m128i)cd), (I)_mm_unpackhi_epi64((__m128i)ab, (__m128i)cd));
}

// FpState is the value of the control register MXCSR. kFlush has the bits flush-to-zero and denormals-are-zero.
using FpState = unsigned;
inline constexpr FpState kFlush = 0x8040;
TESSERA_INLINE FpState fp_state() { return _mm_getcsr(); }
TESSERA_INLINE void set_fp_state(FpState state) { _mm_setcsr(state); }

TESSERA_INLINE B add_fifth_bits(B low, const std::uint8_t* bits) {
  std::int16_t mask;
  __builtin_memcpy(&mask, bits, sizeof mask);
  const __m128i spread = _mm_set_epi64x(0x0101010101010101, 0);
  const __m128i bit = _mm_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201u));
  const __m128i chosen = _mm_and_si128(_mm_shuffle_epi8(_mm_set1_epi16(mask), spread), bit);
  return low | (B)_mm_and_si128(_mm_cmpeq_epi8(chosen, bit), _mm_set1_epi8(16));
}

TESSERA_INLINE I pair_products(B w, I x) { return (I)_mm_maddubs_epi16((__m128i)w, (__m128i)x); }
TESSERA_INLINE I add_words(I a, I b) { return (I)_mm_add_epi16((__m128i)a, (__m128i)b); }
TESSERA_INLINE I dot2(I sum, I w, I x) { return sum + (I)_mm_madd_epi16((__m128i)w, (__m128i)x); }
TESSERA_INLINE void widen_i8(const void* from, void* to) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm_cvtepi8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(from))));
}

template <unsigned kBits>
TESSERA_INLINE I dot4(I sum, B w, I x) {
  const __m128i ones = _mm_set1_epi16(1);
  if constexpr (kBits <= 7) {
    return sum + (I)_mm_madd_epi16(_mm_maddubs_epi16((__m128i)w, (__m128i)x), ones);
  } else {  // |w - 128| * (x times the sign of w - 128): two products add up to at most 2 * 128 * 127, which fits a word
    const __m128i centred = _mm_xor_si128((__m128i)w, _mm_set1_epi8(-128));
    const __m128i signed_x = _mm_sign_epi8((__m128i)x, centred);
    return sum + (I)_mm_madd_epi16(_mm_maddubs_epi16(_mm_abs_epi8(centred), signed_x), ones);
  }
}

}  // namespace tessera::cpu::TESSERA_ISA::native
