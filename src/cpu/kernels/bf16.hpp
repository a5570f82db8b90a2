// Conversions to bf16 (of floats, F16, FP8, INT8 and INT4), for products and attention in the bf16 families, and the floating-point state
// that these families need (denormals are zeros).
#pragma once

#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Rounds to bf16, to nearest even. The results are in the upper halves of the lanes. Denormals become 0, NaN stays NaN.
TESSERA_INLINE U32x16 to_bf16(F32x16 x) {
  const U32x16 bits = as<U32x16>(x);
  const U32x16 size = bits & broadcast(0x7fffffffu);
  const U32x16 rounded = bits + broadcast(0x7fffu) + ((bits >> 16) & broadcast(1u));
  const U32x16 is_nan = greater(size, broadcast(0x7f800000u));
  const U32x16 is_normal = greater(size, broadcast(0x007fffffu));
  const U32x16 kept = select(is_nan, bits | broadcast(0x00400000u), rounded & is_normal);
  return (kept | (bits & broadcast(0x80000000u))) & broadcast(0xffff0000u);
}

// Store 32 numbers (`a`, then `b`) rounded to bf16, the high parts. store_both_parts() also stores the low parts: for each number, the
// difference that rounding lost, rounded to bf16 too.
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

// Return the first (k) or the second (k + 1) bf16 of each lane as floats.
TESSERA_INLINE F32x16 even_of(U32x16 pairs) { return as<F32x16>(pairs << 16); }
TESSERA_INLINE F32x16 odd_of(U32x16 pairs) { return as<F32x16>(pairs & broadcast(0xffff0000u)); }

// Return 16 pairs of signed bytes as floats or as bf16, which hold bytes exactly.
TESSERA_INLINE F32x16Pair floats_of_bytes(const std::byte* at) {
  const I32x16 pairs = load_i16(at);
  return {to_float((pairs << 24) >> 24), to_float(pairs >> 8)};
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

// Converts 16 pairs of E4M3 numbers (FP8; core/float8.hpp) to bf16, each divided by 256. bf16 holds these quotients exactly, and no
// operand of the conversion is a denormal float, which would be slow.
TESSERA_INLINE U32x16 bf16_of_fp8(const std::byte* at) {
#if defined(__AVX512BF16__)
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  const __m512i halves = _mm512_and_si512(_mm512_slli_epi16(_mm512_cvtepi8_epi16(bytes), 7), _mm512_set1_epi16(short(0xbf80)));
  const __m512 first = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
  const __m512 second = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  return {{(native::U)_mm512_cvtne2ps_pbh(second, first)}};
#else
  const auto float_of = [](U32x16 at_the_top) TESSERA_LAMBDA {
    const U32x16 size = (at_the_top >> 4) & broadcast(0x07f00000u);
    const U32x16 tiny = as<U32x16>(as<F32x16>(size + broadcast(0x38800000u)) - broadcast(0x1p-14f));
    const U32x16 is_normal = greater(size, broadcast(0x007fffffu));
    return select(is_normal, size + broadcast(0x38000000u), tiny) | (at_the_top & broadcast(0x80000000u));
  };
  const U32x16 pairs = as<U32x16>(load_i16(at));
  return (float_of(pairs << 24) >> 16) | float_of((pairs << 16) & broadcast(0xff000000u));
#endif
}

// Reads four signed bytes as floats, in the order low.even, low.odd, high.even, high.odd. Each float is in all lanes.
TESSERA_INLINE void multipliers_of(const std::byte* at, F32x16Pair& low, F32x16Pair& high) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_cvtsi32_si128(value_at<int>(at));
  const __m512 four = _mm512_castps128_ps512(_mm_cvtepi32_ps(_mm_cvtepi8_epi32(bytes)));
  const auto lane = [&](int i) TESSERA_LAMBDA { return F32x16{{(native::F)_mm512_permutexvar_ps(_mm512_set1_epi32(i), four)}}; };
#else
  const auto lane = [&](int i) TESSERA_LAMBDA { return broadcast(static_cast<float>(value_at<std::int8_t>(at + i))); };
#endif
  low = {lane(0), lane(1)};
  high = {lane(2), lane(3)};
}

// Expands 16 pairs of bytes (keys or values in INT4) into two rows of pairs of bf16. Each byte has two signed numbers of four bits: the
// lower one, times `of_low`, goes to row `low`; the upper one, times `of_high`, goes to row `high`. A product has at most 8 bits, so bf16
// holds it exactly.
TESSERA_INLINE void bf16_of_nibbles(const std::byte* at, F32x16Pair of_low, F32x16Pair of_high, std::byte* low, std::byte* high) {
  const I32x16 pairs = load_i16(at);
  // Uninitialised memory may give products of more than 8 bits. The mask keeps the surplus bits out of the other number of the pair.
  const auto put = [](std::byte* to, F32x16 even, F32x16 odd) TESSERA_LAMBDA {
    store(to, (as<U32x16>(even) >> 16) | (as<U32x16>(odd) & broadcast(0xffff0000u)));
  };
#if defined(__AVX512F__)
  const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  const auto number = [&](I32x16 nibbles) TESSERA_LAMBDA {  // the number in the lowest four bits
    return F32x16{{(native::F)_mm512_permutexvar_ps((__m512i)nibbles.r[0], numbers)}};
  };
  put(low, number(pairs) * of_low.even, number(pairs >> 8) * of_low.odd);
  put(high, number(pairs >> 4) * of_high.even, number(pairs >> 12) * of_high.odd);
#else
  const auto number = [&](int from_top) TESSERA_LAMBDA { return to_float((pairs << from_top) >> 28); };
  put(low, number(28) * of_low.even, number(20) * of_low.odd);
  put(high, number(24) * of_high.even, number(16) * of_high.odd);
#endif
}

#if defined(__AVX512BF16__)
// Expands two rows of 16 pairs of bytes to bf16 at once, with shifts instead of shuffles, because a shuffle takes the place of a product
// in the CPU's execution units. The price: the lanes are mixed. `even` gets the pairs of the even lanes, eight of the first row and then
// eight of the second; `odd` gets the pairs of the odd lanes. unmix_rows() restores the order.
TESSERA_INLINE void bf16_of_bytes_mixed(const std::byte* first, const std::byte* second, U32x16& even, U32x16& odd) {
  const __m512i one = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
  const __m256i other = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  const U32x16 bytes{{(native::U)_mm512_mask_broadcast_i64x4(one, 0xf0, other)}};
  const auto float_of = [](U32x16 at_the_top) TESSERA_LAMBDA {
    return as<U32x16>(to_float(as<I32x16>(at_the_top) >> 24));
  };
  even = (float_of(bytes << 24) >> 16) | float_of(bytes << 16);  // floats of 8 bits are bf16 already
  odd = (float_of(bytes << 8) >> 16) | float_of(bytes);
}
// Undoes the mixing of bf16_of_bytes_mixed() in the sums of the pairs: `even` becomes the sums of the first row, `odd` the sums of the
// second row.
TESSERA_INLINE void unmix_rows(F32x16& even, F32x16& odd) {
  const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i second = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  const F32x16 of_first{{_mm512_permutex2var_ps(even.r[0], first, odd.r[0])}};
  odd = {{_mm512_permutex2var_ps(even.r[0], second, odd.r[0])}};
  even = of_first;
}

// Returns 16 pairs of f16 rounded to bf16.
TESSERA_INLINE U32x16 bf16_of_halves(const std::byte* at) {
  const auto* from = reinterpret_cast<const __m256i*>(at);
  const __m512 first = _mm512_cvtph_ps(_mm256_loadu_si256(from)), second = _mm512_cvtph_ps(_mm256_loadu_si256(from + 1));
  return {{(native::U)_mm512_cvtne2ps_pbh(second, first)}};
}
#endif

// Returns numbers that were f16, as floats rounded to bf16, with the same bits as to_bf16() but in three operations. The difference
// between a number and the result has at most 3 bits, so bf16 holds the difference exactly. Method (Veltkamp's splitting): 65537 * x,
// rounded to a float's 24 bits, is 65536 * x (exact and even) plus x rounded to 8 bits; subtracting 65536 * x leaves x rounded to 8 bits.
// An infinity becomes NaN, and so does the difference.
TESSERA_INLINE F32x16 high_of_f16(F32x16 x) {
  const F32x16 scaled = x * broadcast(65537.0f);
  return scaled - (scaled - x);
}

// While an object of this class lives, denormal operands and results count as zeros, as in AMX's tile instruction TDPBF16PS, so that
// vectors compute the same bits. The compiler moves no access to memory across the constructor or the destructor, and so no arithmetic
// either, since all arithmetic here begins and ends in memory.
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
