// Packed integers taken apart with vectors. A vector of 64 bytes holds four consecutive k of each of 16 outputs: a row of
// a B tile (k group g: k = 4 g to 4 g + 3).
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "cpu/packed_layout.hpp"

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

// 16 numbers of f16.
[[gnu::always_inline]] inline __m512 load_f16(const std::byte* at) noexcept {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

// The integers of a tile of 32 k as they are stored (not negative), for each k group: `to(g, q)`.
template <FormLayout kLayout, class To>
[[gnu::always_inline]] inline void unpack_block32(const std::byte* tile, To to) noexcept {
  if constexpr (kLayout.bits == 8) {
#pragma GCC unroll 8
    for (std::size_t g = 0; g < 8; ++g) to(g, _mm512_loadu_si512(tile + 64 * g));
  } else {
    const auto fifth = [&](std::size_t g, __m512i q) {
      if constexpr (kLayout.bits == 5) {
        return _mm512_mask_add_epi8(q, load_u64(tile + kLayout.more_at + 8 * g), q, _mm512_set1_epi8(16));
      } else {
        static_cast<void>(g);
        return q;
      }
    };
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      const __m512i bytes = _mm512_loadu_si512(tile + 64 * v);
      to(v, fifth(v, low_halves(bytes)));
      to(v + 4, fifth(v + 4, high_halves(bytes)));
    }
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
