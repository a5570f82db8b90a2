// Unpacks quantised weights (packed forms block32 and block256) into integers of one byte each, for the tile unit. A vector of 64 bytes
// has the weights of 16 outputs for four consecutive values of k, which is one row of a tile of weights (B, in tiles.hpp). These four
// values of k are a k group: group g has k = 4 g to 4 g + 3.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "cpu/products/packed_layout.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] inline std::uint64_t load_u64(const std::byte* at) noexcept {
  std::uint64_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

[[gnu::always_inline]] inline __m512i low_halves(__m512i bytes) noexcept {
  return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}

[[gnu::always_inline]] inline __m512i high_halves(__m512i bytes) noexcept {
  return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(15));
}

// Returns 16 numbers of f16 as floats.
[[gnu::always_inline]] inline __m512 halves_at(const std::byte* at) noexcept {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

// Calls to(g, q) for each k group g of a tile of 32 values of k. q: the group's integers as they are stored (not negative).
template <FormLayout kLayout, class To>
[[gnu::always_inline]] inline void unpack_block32(const std::byte* tile, To to) noexcept {
  if constexpr (kLayout.bits == 8) {
#pragma GCC unroll 8
    for (std::size_t g = 0; g < 8; ++g) to(g, _mm512_loadu_si512(tile + 64 * g));
  } else {
    const auto fifth = [&](std::size_t g, __m512i q) {
      if constexpr (kLayout.bits == 5) {
        return _mm512_mask_add_epi8(q, load_u64(tile + kLayout.more(0, g)), q, _mm512_set1_epi8(16));
      } else {
        static_cast<void>(g);
        return q;
      }
    };
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      const __m512i bytes = _mm512_loadu_si512(tile + kLayout.low(0, v));
      to(v, fifth(v, low_halves(bytes)));
      to(v + 4, fifth(v + 4, high_halves(bytes)));
    }
  }
}

// Calls to(g, q) for each k group g of a tile of 256 values of k: g from 0 to 63.
template <FormLayout kLayout, class To>
[[gnu::always_inline]] inline void unpack_block256(const std::byte* tile, To to) noexcept {
  // Completes the integers `q` of group v of a quarter (64 values of k), which have only their lowest four bits. 5 bits: adds the fifth
  // bits, which are at `fifth`. 6 bits: adds the upper two bits, which `bits` has in each byte, from bit kAt on. 4 bits: nothing to add.
  const auto more = [&]<unsigned kAt>(const std::byte* fifth, std::size_t v, __m512i q, __m512i bits) {
    if constexpr (kLayout.bits == 5) {
      return _mm512_mask_add_epi8(q, load_u64(fifth + 8 * v), q, _mm512_set1_epi8(16));
    } else if constexpr (kLayout.bits == 6) {
      constexpr unsigned kLeft = kAt <= 4 ? 4 - kAt : 0;
      const __m512i at4 = kAt <= 4 ? _mm512_slli_epi16(bits, kLeft) : _mm512_srli_epi16(bits, 2);
      return _mm512_or_si512(q, _mm512_and_si512(at4, _mm512_set1_epi8(0x30)));
    } else {
      return q;
    }
  };
  for (std::size_t p = 0; p < 4; ++p) {
    const std::byte* fifth = tile + kLayout.more(p, 0);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 8; v += 2) {
      const std::size_t g = 16 * p + v;
      const __m512i even = _mm512_loadu_si512(tile + kLayout.low(p, v));
      const __m512i odd = _mm512_loadu_si512(tile + kLayout.low(p, v + 1));
      __m512i bits = even;
      if constexpr (kLayout.bits == 6) bits = _mm512_loadu_si512(tile + kLayout.more(p, v));
      to(g, more.template operator()<0>(fifth, v, low_halves(even), bits));
      to(g + 8, more.template operator()<2>(fifth, v + 8, high_halves(even), bits));
      to(g + 1, more.template operator()<4>(fifth, v + 1, low_halves(odd), bits));
      to(g + 9, more.template operator()<6>(fifth, v + 9, high_halves(odd), bits));
    }
  }
}

// The integer scales of the sub-blocks in a tile of 256 values of k, a lane for each output. In forms of 6 bits there are sixteen scales;
// in the other forms eight scales and eight minima.
template <FormLayout kLayout>
class SubScales {
 public:
  explicit SubScales(const std::byte* tile) noexcept {
    const std::byte* at = tile + kLayout.scales_at;
    if constexpr (kLayout.bits == 6) {
      for (std::size_t w = 0; w < 4; ++w) words_[w] = _mm512_loadu_si512(at + 64 * w);
    } else {
      const __m512i w0 = _mm512_loadu_si512(at), w1 = _mm512_loadu_si512(at + 64), w2 = _mm512_loadu_si512(at + 128);
      const __m512i six = _mm512_set1_epi8(63), top = _mm512_set1_epi8(0x30);
      words_[0] = _mm512_and_si512(w0, six);
      words_[1] = _mm512_or_si512(low_halves(w2), _mm512_and_si512(_mm512_srli_epi16(w0, 2), top));
      words_[2] = _mm512_and_si512(w1, six);
      words_[3] = _mm512_or_si512(high_halves(w2), _mm512_and_si512(_mm512_srli_epi16(w1, 2), top));
    }
  }

  // Returns the scales of sub-block j, which has 32 values of k, or 16 in forms of 6 bits.
  [[gnu::always_inline]] [[nodiscard]] __m512i scale(std::size_t j) const noexcept {
    return byte(words_[j / 4], j % 4);
  }
  [[gnu::always_inline]] [[nodiscard]] __m512i min(std::size_t j) const noexcept {
    return byte(words_[2 + j / 4], j % 4);
  }

 private:
  [[gnu::always_inline]] static __m512i byte(__m512i word, std::size_t i) noexcept {
    const __m512i at_top = _mm512_sllv_epi32(word, _mm512_set1_epi32(static_cast<int>(24 - 8 * i)));
    return kLayout.bits == 6 ? _mm512_srai_epi32(at_top, 24) : _mm512_srli_epi32(at_top, 24);
  }

  __m512i words_[4];
};

}  // namespace tessera::cpu::TESSERA_ISA
