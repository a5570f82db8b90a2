// The native registers of AVX-512 (F, BW, VL, DQ), with or without VNNI, below simd.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tessera::cpu::TESSERA_ISA::native {

inline constexpr std::size_t kBytes = 64;
inline constexpr std::size_t kNames = 32;
#ifdef __AVX512VNNI__
inline constexpr bool kCentredBytes = false, kPairs = false, kWords = false;
#else
inline constexpr bool kCentredBytes = true, kPairs = true, kWords = true;
#endif

using F = float __attribute__((vector_size(kBytes)));
using I = std::int32_t __attribute__((vector_size(kBytes)));
using U = std::uint32_t __attribute__((vector_size(kBytes)));
using B = std::uint8_t __attribute__((vector_size(kBytes)));
using I4 = std::int32_t __attribute__((vector_size(16)));

TESSERA_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
TESSERA_INLINE F larger(F a, F b) { return _mm512_max_ps(a, b); }
TESSERA_INLINE F smaller(F a, F b) { return _mm512_min_ps(a, b); }
TESSERA_INLINE I max(I a, I b) { return (I)_mm512_max_epi32((__m512i)a, (__m512i)b); }
TESSERA_INLINE F to_float(I a) { return _mm512_cvtepi32_ps((__m512i)a); }
TESSERA_INLINE I round(F a) { return (I)_mm512_cvtps_epi32(a); }
TESSERA_INLINE F load_f16(const void* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
}
// Converts the f16 numbers to floats first, and then shuffles the floats within 128 bits. To shuffle the f16 numbers would cost more.
TESSERA_INLINE void load_f16_pairs(const void* at, F& even, F& odd) {
  const auto* halves = static_cast<const __m256i*>(at);
  const F first = _mm512_cvtph_ps(_mm256_loadu_si256(halves)), second = _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1));
  even = _mm512_shuffle_ps(first, second, 0x88);
  odd = _mm512_shuffle_ps(first, second, 0xdd);
}
TESSERA_INLINE F unmixed(F a) {
  return _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), _mm512_castps_pd(a)));
}
TESSERA_INLINE I load_i16(const void* at) {
  return (I)_mm512_cvtepi16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
}
TESSERA_INLINE void store_i8(void* to, I a) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_cvtepi32_epi8((__m512i)a));
}
TESSERA_INLINE void store_u16(void* to, I a) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtepi32_epi16((__m512i)a));
}
TESSERA_INLINE void store_past_caches(float* to, F a) { _mm512_stream_ps(to, a); }
TESSERA_INLINE void fence_stores() { _mm_sfence(); }
template <class Op>
TESSERA_INLINE I4 reduce4(I a, I b, I c, I d, Op op) {
  const I ab = op((I)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b), (I)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b));
  const I cd = op((I)_mm512_unpacklo_epi32((__m512i)c, (__m512i)d), (I)_mm512_unpackhi_epi32((__m512i)c, (__m512i)d));
  I all = op((I)_mm512_unpacklo_epi64((__m512i)ab, (__m512i)cd), (I)_mm512_unpackhi_epi64((__m512i)ab, (__m512i)cd));
  all = op(all, (I)_mm512_shuffle_i32x4((__m512i)all, (__m512i)all, 0x4e));
  all = op(all, (I)_mm512_shuffle_i32x4((__m512i)all, (__m512i)all, 0xb1));
  return (I4)_mm512_castsi512_si128((__m512i)all);
}

// FpState is the value of the control register MXCSR. kFlush has the bits flush-to-zero and denormals-are-zero.
using FpState = unsigned;
inline constexpr FpState kFlush = 0x8040;
TESSERA_INLINE FpState fp_state() { return _mm_getcsr(); }
TESSERA_INLINE void set_fp_state(FpState state) { _mm_setcsr(state); }

TESSERA_INLINE B add_fifth_bits(B low, const std::uint8_t* bits) {
  std::uint64_t mask;
  __builtin_memcpy(&mask, bits, sizeof mask);
  return (B)_mm512_mask_add_epi8((__m512i)low, mask, (__m512i)low, _mm512_set1_epi8(16));
}

TESSERA_INLINE I pair_products(B w, I x) { return (I)_mm512_maddubs_epi16((__m512i)w, (__m512i)x); }
TESSERA_INLINE I add_words(I a, I b) { return (I)_mm512_add_epi16((__m512i)a, (__m512i)b); }
TESSERA_INLINE I dot2(I sum, I w, I x) {
#ifdef __AVX512VNNI__
  return (I)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
#else
  return sum + (I)_mm512_madd_epi16((__m512i)w, (__m512i)x);
#endif
}
TESSERA_INLINE void widen_i8(const void* from, void* to) {
  _mm512_storeu_si512(to, _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(from))));
}

template <unsigned kBits>
TESSERA_INLINE I dot4(I sum, B w, I x) {
#ifdef __AVX512VNNI__
  return (I)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
#else
  const __m512i ones = _mm512_set1_epi16(1);
  if constexpr (kBits <= 7) {
    return sum + (I)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)w, (__m512i)x), ones);
  } else {  // |w - 128| * (x times the sign of w - 128): two products add up to at most 2 * 128 * 127, which fits a word
    const __m512i centred = _mm512_xor_si512((__m512i)w, _mm512_set1_epi8(-128));
    const __mmask64 negative = _mm512_movepi8_mask(centred);
    const __m512i signed_x = _mm512_mask_sub_epi8((__m512i)x, negative, _mm512_setzero_si512(), (__m512i)x);
    return sum + (I)_mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_abs_epi8(centred), signed_x), ones);
  }
#endif
}

#ifdef __AVX512VNNI__
// Adds to each lane of `sum` the products of the lane's four bytes of `w` with the four bytes at `x`, which are the same for all lanes.
// One instruction loads and multiplies. With an intrinsic, g++ 12 would load the bytes by a separate instruction; fewer instructions are
// faster, because a core overlaps only a limited number of them.
TESSERA_INLINE I dot4_at(I sum, B w, const void* x) {
  using Four = int __attribute__((may_alias));
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*static_cast<const Four*>(x)));
  return sum;
}
#endif

}  // namespace tessera::cpu::TESSERA_ISA::native
