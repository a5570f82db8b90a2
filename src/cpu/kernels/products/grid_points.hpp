// Decodes weights of the IQ1, IQ2 and IQ3 formats with AVX-512, for the kernels in open_grids.hpp and grid_row.hpp. A weight's block
// stores indices into a table, the grid. An entry of the grid is a point: eight values, in IQ3 four. One instruction gathers eight or
// sixteen points, which are 64 values; the signs of these 64 values are one mask. In all functions `block` is an output's block of 256
// values, and `c` the index of one of its four quarters of 64 values.
#pragma once

#include "cpu/kernels/simd/simd.hpp"
#include "cpu/products/open_tile.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Returns whether this set has these functions for the form.
[[gnu::always_inline]] constexpr bool has_grid(PackedForm form) {
#if defined(__AVX512F__)
  return form >= PackedForm::kept_iq3_s && form <= PackedForm::kept_iq1_s;
#else
  static_cast<void>(form);
  return false;
#endif
}

#if defined(__AVX512F__)

// ---- points: values without their signs; in IQ1, values before the offset is added or subtracted ----

// Returns eight bytes as eight indices of 64 bits.
TESSERA_INLINE __m512i eight_indices(const std::byte* at) { return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))); }

// Adds to each lane's index (its low eight bits) the bits above the eighth. A block stores the upper bits of several indices together in
// `more`. Each lane rotates `more` left by its number in `turns`, which moves the lane's own bits to where `mask` has ones.
TESSERA_INLINE __m512i with_higher(__m512i indices, std::uint64_t more, __m512i turns, long long mask) {
  const __m512i higher = _mm512_rolv_epi64(_mm512_set1_epi64(static_cast<long long>(more)), turns);
  return _mm512_or_si512(indices, _mm512_and_si512(higher, _mm512_set1_epi64(mask)));
}

TESSERA_INLINE __m512i gather(const std::uint64_t* grid, __m512i indices) { return _mm512_i64gather_epi64(indices, grid, 8); }
TESSERA_INLINE __m512i gather(const std::uint32_t* grid, __m512i indices) { return _mm512_i32gather_epi32(indices, grid, 4); }

template <PackedForm kForm>
TESSERA_INLINE __m512i points_at(const Grids& grids, const std::byte* block, std::size_t c) {
  if constexpr (kForm == PackedForm::kept_iq2_xxs) {  // the first four of each eight bytes are indices
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + 16 * c));
    return gather(grids.iq2_xxs, _mm512_cvtepu8_epi64(_mm_shuffle_epi32(bytes, 0x08)));
  } else if constexpr (kForm == PackedForm::kept_iq2_xs) {
    const __m512i words = _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + 16 * c)));
    return gather(grids.iq2_xs, _mm512_and_si512(words, _mm512_set1_epi64(511)));
  } else if constexpr (kForm == PackedForm::kept_iq2_s) {
    const __m512i turns = _mm512_set_epi64(58, 60, 62, 0, 2, 4, 6, 8);
    return gather(grids.iq2_s, with_higher(eight_indices(block + 2 + 8 * c), value_at<std::uint16_t>(block + 66 + 2 * c), turns, 0x300));
  } else if constexpr (kForm == PackedForm::kept_iq3_xxs || kForm == PackedForm::kept_iq3_s) {
    const __m512i indices = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + 16 * c)));
    if constexpr (kForm == PackedForm::kept_iq3_xxs) return gather(grids.iq3_xxs, indices);
    const __mmask16 ninth = value_at<std::uint16_t>(block + 66 + 2 * c);
    return gather(grids.iq3_s, _mm512_mask_or_epi32(indices, ninth, indices, _mm512_set1_epi32(256)));
  } else if constexpr (kForm == PackedForm::kept_iq1_s) {
    const __m512i turns = _mm512_set_epi64(47, 50, 53, 56, 63, 2, 5, 8);
    return gather(grids.iq1, with_higher(eight_indices(block + 2 + 8 * c), value_at<std::uint32_t>(block + 34 + 4 * c), turns, 0x700));
  } else {
    const __m512i turns = _mm512_set_epi64(44, 48, 52, 56, 60, 0, 4, 8);
    return gather(grids.iq1, with_higher(eight_indices(block + 8 * c), value_at<std::uint32_t>(block + 32 + 4 * c), turns, 0x700));
  }
}

// ---- which values are negative; in IQ1, from which values the offset is subtracted instead of added ----

// Returns the signs of eight groups, one byte for each. A byte of `sevens` has the seven stored bits; the function adds the eighth bit,
// which makes the number of set bits even.
TESSERA_INLINE std::uint64_t even_signs(std::uint64_t sevens) {
  std::uint64_t parity = sevens ^ (sevens >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return sevens | (parity & 0x0101010101010101u) << 7;
}
// Returns the lowest 28 bits of each 32-bit half, split into four numbers of seven bits, each in a byte.
TESSERA_INLINE std::uint64_t sevens_of(std::uint64_t halves) {
  halves = (halves & 0x00003fff00003fffu) | (halves & 0x0fffc0000fffc000u) << 2;
  return (halves & 0x007f007f007f007fu) | (halves & 0x3f803f803f803f80u) << 1;
}

template <PackedForm kForm>
TESSERA_INLINE __mmask64 negative_at(const std::byte* block, std::size_t c) {
  if constexpr (kForm == PackedForm::kept_iq2_xxs) {
    return even_signs(sevens_of(value_at<std::uint32_t>(block + 6 + 16 * c) | std::uint64_t{value_at<std::uint32_t>(block + 14 + 16 * c)} << 32));
  } else if constexpr (kForm == PackedForm::kept_iq3_xxs) {
    return even_signs(sevens_of(value_at<std::uint64_t>(block + 66 + 8 * c)));
  } else if constexpr (kForm == PackedForm::kept_iq2_xs) {
    const __m128i sevens = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + 16 * c)), 9);
    return even_signs(static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(sevens, sevens))));
  } else if constexpr (kForm == PackedForm::kept_iq2_s || kForm == PackedForm::kept_iq3_s) {
    return value_at<std::uint64_t>(block + (kForm == PackedForm::kept_iq2_s ? 34 : 74) + 8 * c);
  } else if constexpr (kForm == PackedForm::kept_iq1_s) {
    const std::uint64_t more = value_at<std::uint32_t>(block + 34 + 4 * c);  // bit 15 is for the first 32 values, bit 31 for the other 32
    return ((more >> 15 & 1u) | (more >> 31) << 32) * 0xffffffffu;
  } else {
    const std::uint64_t more = value_at<std::uint32_t>(block + 32 + 4 * c);
    std::uint64_t eights = 0;
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) eights |= (more >> (4 * g + 3) & 1u) << (8 * g);
    return eights * 255;
  }
}

// ---- scales ----

// Returns the 16 scales of the block as bytes, one for each 16 values.
template <PackedForm kForm>
TESSERA_INLINE __m128i scales_of(const std::byte* block) {
  __m128i scales;
  if constexpr (kForm == PackedForm::kept_iq1_m) {  // four words, each with four scales of three bits
    const __m128i words = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + 48));
    const __m256i each = _mm256_permutexvar_epi16(_mm256_set_epi16(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0), _mm256_castsi128_si256(words));
    const __m256i threes = _mm256_srlv_epi16(each, _mm256_set1_epi64x(0x0009000600030000));
    scales = _mm256_cvtepi16_epi8(_mm256_and_si256(threes, _mm256_set1_epi16(7)));
  } else if constexpr (kForm == PackedForm::kept_iq2_xs || kForm == PackedForm::kept_iq2_s) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + (kForm == PackedForm::kept_iq2_xs ? 66 : 74)));
    scales = _mm_and_si128(_mm_unpacklo_epi8(pairs, _mm_srli_epi16(pairs, 4)), _mm_set1_epi8(15));
  } else {  // a scale is for 32 values, so it is stored twice
    __m128i eight;
    if constexpr (kForm == PackedForm::kept_iq3_s) {
      const __m128i pairs = _mm_cvtsi32_si128(static_cast<int>(value_at<std::uint32_t>(block + 106)));
      eight = _mm_and_si128(_mm_unpacklo_epi8(pairs, _mm_srli_epi16(pairs, 4)), _mm_set1_epi8(15));
    } else if constexpr (kForm == PackedForm::kept_iq3_xxs) {
      eight = _mm256_cvtepi32_epi8(_mm256_srli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 66)), 28));
    } else if constexpr (kForm == PackedForm::kept_iq2_xxs) {
      eight = _mm512_cvtepi64_epi8(_mm512_srli_epi64(_mm512_loadu_si512(block + 2), 60));
    } else {
      const __m128i words = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 34)), 12);
      eight = _mm_packus_epi16(_mm_and_si128(words, _mm_set1_epi16(7)), words);
    }
    scales = _mm_unpacklo_epi8(eight, eight);
  }
  return _mm_or_si128(_mm_add_epi8(scales, scales), _mm_set1_epi8(1));  // 2 * scale + 1
}

// A weight is d times this factor, times its scale (scales_of()), times its value as the grid stores it, with sign (IQ1: with offset).
template <PackedForm kForm>
inline constexpr float kGridFactor = kForm == PackedForm::kept_iq3_s ? 1.0f : kForm == PackedForm::kept_iq3_xxs ? 0.25f : 0.125f;

template <PackedForm kForm>
TESSERA_INLINE std::uint16_t half_at(const std::byte* block) {
  if constexpr (kForm != PackedForm::kept_iq1_m) return value_at<std::uint16_t>(block);
  std::uint32_t d = 0;
  for (std::size_t w = 0; w < 4; ++w) d |= std::uint32_t{value_at<std::uint16_t>(block + 48 + 2 * w)} >> 12 << (4 * w);
  return static_cast<std::uint16_t>(d);
}

// Returns d times kGridFactor for the blocks of 16 outputs.
template <PackedForm kForm>
TESSERA_INLINE F32x16 grid_d(const std::byte* tile) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes / kPanel;
  std::uint16_t d[kPanel];
  for (std::size_t n = 0; n < kPanel; ++n) d[n] = half_at<kForm>(tile + n * kBytes);
  return load_f16(reinterpret_cast<const std::byte*>(d)) * broadcast(kGridFactor<kForm>);
}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
