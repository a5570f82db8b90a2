// Rounding to bf16, and the floating-point state of the bf16 families.
#pragma once

#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

// To nearest even, as the high halves of floats; denormals are 0, NaN stays NaN.
TESSERA_INLINE U32x16 to_bf16(F32x16 x) {
  const U32x16 bits = as<U32x16>(x);
  const U32x16 size = bits & broadcast(0x7fffffffu);
  const U32x16 rounded = bits + broadcast(0x7fffu) + ((bits >> 16) & broadcast(1u));
  const U32x16 is_nan = greater(size, broadcast(0x7f800000u));
  const U32x16 is_normal = greater(size, broadcast(0x007fffffu));
  const U32x16 kept = select(is_nan, bits | broadcast(0x00400000u), rounded & is_normal);
  return (kept | (bits & broadcast(0x80000000u))) & broadcast(0xffff0000u);
}

// The two bf16 of each lane, which are of k and k + 1.
TESSERA_INLINE F32x16 even_of(U32x16 pairs) { return as<F32x16>(pairs << 16); }
TESSERA_INLINE F32x16 odd_of(U32x16 pairs) { return as<F32x16>(pairs & broadcast(0xffff0000u)); }

// 16 pairs of signed bytes, which bf16 and f32 hold exactly.
TESSERA_INLINE F32x16Pair floats_of_bytes(const std::byte* at) {
  const U32x16 pairs = as<U32x16>(load_u16(at));
  return {to_float(as<I32x16>(pairs << 24) >> 24), to_float(as<I32x16>(pairs << 16) >> 24)};
}
TESSERA_INLINE U32x16 bf16_of_bytes(const std::byte* at) {
#if defined(__AVX512BF16__)
  const auto* from = reinterpret_cast<const __m128i*>(at);
  const __m512 first = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from)));
  const __m512 second = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from + 1)));
  return {{(native::U)_mm512_cvtne2ps_pbh(second, first)}};
#else
  const F32x16Pair pair = floats_of_bytes(at);
  return (as<U32x16>(pair.even) >> 16) | as<U32x16>(pair.odd);
#endif
}

#if defined(__AVX512BF16__)
// 16 pairs of f16, rounded.
TESSERA_INLINE U32x16 bf16_of_halves(const std::byte* at) {
  const auto* from = reinterpret_cast<const __m256i*>(at);
  const __m512 first = _mm512_cvtph_ps(_mm256_loadu_si256(from)), second = _mm512_cvtph_ps(_mm256_loadu_si256(from + 1));
  return {{(native::U)_mm512_cvtne2ps_pbh(second, first)}};
}
#endif

// What bf16 holds of numbers of f16, rounded as to_bf16() does; what is left of one has at most 3 bits, so bf16 holds it.
// Veltkamp's splitting: 65537 times a number of 11 bits, rounded to 24, is 65536 times it, exact and even, plus its first 8
// bits rounded. An infinity becomes NaN, as what is left of it is.
TESSERA_INLINE F32x16 high_of_f16(F32x16 x) {
  const F32x16 scaled = x * broadcast(65537.0f);
  return scaled - (scaled - x);
}

// Denormal operands and results are zeros while this lives, as the tile instruction TDPBF16PS has it. Nothing that
// reads or writes memory moves across its ends, and all work does.
class FlushDenormals {
 public:
  [[gnu::always_inline]] FlushDenormals() noexcept : state_(native::fp_state()) {
    native::set_fp_state(state_ | native::kFlush);
    __asm__ volatile("" ::: "memory");
  }
  [[gnu::always_inline]] ~FlushDenormals() {
    __asm__ volatile("" ::: "memory");
    native::set_fp_state(state_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  native::FpState state_;
};

}  // namespace tessera::cpu::TESSERA_ISA
