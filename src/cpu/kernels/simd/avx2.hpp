// The native registers of AVX2 with FMA and F16C, with or without AVX-VNNI, below simd.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tessera::cpu::TESSERA_ISA::native {

inline constexpr std::size_t kBytes = 32;
inline constexpr std::size_t kNames = 16;
#ifdef __AVXVNNI__
inline constexpr bool kCentredBytes = false, kPairs = false, kWords = false;
#else
inline constexpr bool kCentredBytes = true, kPairs = true, kWords = true;
#endif

using F = float __attribute__((vector_size(kBytes)));
using I = std::int32_t __attribute__((vector_size(kBytes)));
using U = std::uint32_t __attribute__((vector_size(kBytes)));
using B = std::uint8_t __attribute__((vector_size(kBytes)));
using I4 = std::int32_t __attribute__((vector_size(16)));

TESSERA_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
TESSERA_INLINE F larger(F a, F b) { return _mm256_max_ps(a, b); }
TESSERA_INLINE F smaller(F a, F b) { return _mm256_min_ps(a, b); }
TESSERA_INLINE I max(I a, I b) { return (I)_mm256_max_epi32((__m256i)a, (__m256i)b); }
TESSERA_INLINE F to_float(I a) { return _mm256_cvtepi32_ps((__m256i)a); }
TESSERA_INLINE I round(F a) { return (I)_mm256_cvtps_epi32(a); }
TESSERA_INLINE F load_f16(const void* at) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at))); }
// Converts the f16 numbers to floats first, and then shuffles the floats within 128 bits. To shuffle the f16 numbers would cost more.
TESSERA_INLINE void load_f16_pairs(const void* at, F& even, F& odd) {
  const auto* halves = static_cast<const __m128i*>(at);
  const F first = _mm256_cvtph_ps(_mm_loadu_si128(halves)), second = _mm256_cvtph_ps(_mm_loadu_si128(halves + 1));
  even = _mm256_shuffle_ps(first, second, 0x88);
  odd = _mm256_shuffle_ps(first, second, 0xdd);
}
TESSERA_INLINE F unmixed(F a) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(a), 0xd8)); }
TESSERA_INLINE I load_i16(const void* at) {
  return (I)_mm256_cvtepi16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}
TESSERA_INLINE __m128i pack16(I a) {  // the numbers must fit 16 bits without sign
  return _mm_packus_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
}
TESSERA_INLINE void store_i8(void* to, I a) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packs_epi16(words, words));
}
TESSERA_INLINE void store_u16(void* to, I a) { _mm_storeu_si128(static_cast<__m128i*>(to), pack16(a)); }
TESSERA_INLINE void store_past_caches(float* to, F a) { _mm256_stream_ps(to, a); }
TESSERA_INLINE void fence_stores() { _mm_sfence(); }
template <class Op>
TESSERA_INLINE I4 reduce4(I a, I b, I c, I d, Op op) {
  const I ab = op((I)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b), (I)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b));
  const I cd = op((I)_mm256_unpacklo_epi32((__m256i)c, (__m256i)d), (I)_mm256_unpackhi_epi32((__m256i)c, (__m256i)d));
  const I all =
      op((I)_mm256_unpacklo_epi64((__m256i)ab, (__m256i)cd), (I)_mm256_unpackhi_epi64((__m256i)ab, (__m256i)cd));
  return (I4)_mm256_castsi256_si128((__m256i)op(all, (I)_mm256_permute2x128_si256((__m256i)all, (__m256i)all, 1)));
}

// FpState is the value of the control register MXCSR. kFlush has the bits flush-to-zero and denormals-are-zero.
using FpState = unsigned;
inline constexpr FpState kFlush = 0x8040;
TESSERA_INLINE FpState fp_state() { return _mm_getcsr(); }
TESSERA_INLINE void set_fp_state(FpState state) { _mm_setcsr(state); }

TESSERA_INLINE B add_fifth_bits(B low, const std::uint8_t* bits) {
  std::int32_t mask;
  __builtin_memcpy(&mask, bits, sizeof mask);
  const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201u));
  const __m256i chosen = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(mask), spread), bit);
  return low | (B)_mm256_and_si256(_mm256_cmpeq_epi8(chosen, bit), _mm256_set1_epi8(16));
}

TESSERA_INLINE I pair_products(B w, I x) { return (I)_mm256_maddubs_epi16((__m256i)w, (__m256i)x); }
TESSERA_INLINE I add_words(I a, I b) { return (I)_mm256_add_epi16((__m256i)a, (__m256i)b); }
TESSERA_INLINE I dot2(I sum, I w, I x) { return sum + (I)_mm256_madd_epi16((__m256i)w, (__m256i)x); }
TESSERA_INLINE void widen_i8(const void* from, void* to) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(from))));
}

template <unsigned kBits>
TESSERA_INLINE I dot4(I sum, B w, I x) {
#ifdef __AVXVNNI__
  return (I)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
#else
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kBits <= 7) {
    return sum + (I)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)w, (__m256i)x), ones);
  } else {  // |w - 128| * (x times the sign of w - 128): two products add up to at most 2 * 128 * 127, which fits a word
    const __m256i centred = _mm256_xor_si256((__m256i)w, _mm256_set1_epi8(-128));
    const __m256i signed_x = _mm256_sign_epi8((__m256i)x, centred);
    return sum + (I)_mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(centred), signed_x), ones);
  }
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA::native
