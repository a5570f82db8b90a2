// Tiles of the IQ1, IQ2 and IQ3 formats, opened with AVX-512: points are looked up eight values at a time, then signs of 64
// values are one mask, and 16 outputs' values become lanes by transposing. What open_tile() makes of them.
#pragma once

#include "cpu/kernels/simd/simd.hpp"
#include "cpu/open_tile.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Whether such tiles are opened here.
[[gnu::always_inline]] constexpr bool has_grid(PackedForm form) {
#if defined(__AVX512F__)
  return form >= PackedForm::kept_iq3_s && form <= PackedForm::kept_iq1_s;
#else
  static_cast<void>(form);
  return false;
#endif
}

#if defined(__AVX512F__)

// 64 values of a block: eight groups, from 8 c on.
struct Points {
  std::uint64_t values[8];  // without their signs
  std::uint64_t negative;   // a bit a value (IQ1: moved down)
};

// Seven bits of sign in each byte become eight, an even number of them set.
TESSERA_INLINE std::uint64_t even_signs(std::uint64_t sevens) {
  std::uint64_t parity = sevens ^ (sevens >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return sevens | (parity & 0x0101010101010101u) << 7;
}
// Four times seven bits, a byte each.
TESSERA_INLINE std::uint64_t sevens_of(std::uint32_t bits) {
  return (bits & 127u) | (bits << 1 & 127u << 8) | (bits << 2 & 127u << 16) | (bits << 3 & 127u << 24);
}

TESSERA_INLINE std::uint64_t u8_at(const std::byte* at) { return static_cast<std::uint64_t>(*at); }

template <PackedForm kForm>
TESSERA_INLINE void find_points(const Grids& grids, const std::byte* block, std::size_t c, Points& to) {
  if constexpr (kForm == PackedForm::kept_iq2_xxs) {
    const std::byte* at = block + 2 + 16 * c;
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) to.values[g] = grids.iq2_xxs[u8_at(at + g / 4 * 8 + g % 4)];
    const auto first = value_at<std::uint32_t>(at + 4), second = value_at<std::uint32_t>(at + 12);
    to.negative = even_signs(sevens_of(first) | sevens_of(second) << 32);
  } else if constexpr (kForm == PackedForm::kept_iq2_xs) {
    const std::byte* at = block + 2 + 16 * c;
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) to.values[g] = grids.iq2_xs[value_at<std::uint16_t>(at + 2 * g) & 511u];
    const __m128i sevens = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), 9);
    to.negative = even_signs(static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(sevens, sevens))));
  } else if constexpr (kForm == PackedForm::kept_iq2_s) {
    const auto high = value_at<std::uint16_t>(block + 66 + 2 * c);
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) {
      to.values[g] = grids.iq2_s[u8_at(block + 2 + 8 * c + g) | (std::uint64_t{high} >> (2 * g) & 3u) << 8];
    }
    to.negative = value_at<std::uint64_t>(block + 34 + 8 * c);
  } else if constexpr (kForm == PackedForm::kept_iq3_xxs) {
    const std::byte* at = block + 2 + 16 * c;
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) {
      to.values[g] = grids.iq3_xxs[u8_at(at + 2 * g)] | std::uint64_t{grids.iq3_xxs[u8_at(at + 2 * g + 1)]} << 32;
    }
    const auto first = value_at<std::uint32_t>(block + 66 + 8 * c), second = value_at<std::uint32_t>(block + 70 + 8 * c);
    to.negative = even_signs(sevens_of(first) | sevens_of(second) << 32);
  } else if constexpr (kForm == PackedForm::kept_iq3_s) {
    const std::byte* at = block + 2 + 16 * c;
    const auto ninth = value_at<std::uint16_t>(block + 66 + 2 * c);
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) {
      const auto bits = std::uint64_t{ninth} >> (2 * g);
      const std::uint64_t first = grids.iq3_s[u8_at(at + 2 * g) | (bits & 1u) << 8];
      to.values[g] = first | std::uint64_t{grids.iq3_s[u8_at(at + 2 * g + 1) | (bits & 2u) << 7]} << 32;
    }
    to.negative = value_at<std::uint64_t>(block + 74 + 8 * c);
  } else if constexpr (kForm == PackedForm::kept_iq1_s) {
    to.negative = 0;
    TESSERA_UNROLL
    for (std::size_t j = 0; j < 2; ++j) {
      const std::uint64_t more = value_at<std::uint16_t>(block + 34 + 4 * c + 2 * j);
      TESSERA_UNROLL
      for (std::size_t g = 0; g < 4; ++g) {
        to.values[4 * j + g] = grids.iq1[u8_at(block + 2 + 8 * c + 4 * j + g) | (more >> (3 * g) & 7u) << 8];
      }
      to.negative |= (std::uint64_t{0} - (more >> 15)) >> 32 << (32 * j);
    }
  } else {
    const std::uint64_t more = value_at<std::uint32_t>(block + 32 + 4 * c);
    to.negative = 0;
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 8; ++g) {
      to.values[g] = grids.iq1[u8_at(block + 8 * c + g) | (more >> (4 * g) & 7u) << 8];
      to.negative |= (more >> (4 * g + 3) & 1u) << (8 * g);
    }
    to.negative *= 255;
  }
}

// 16 rows of 16 words become columns: result i has word i of each row. By pairs, fours, then quarters of registers.
TESSERA_INLINE void transpose(__m512i (&rows)[16]) {
  __m512i a[16], b[16];
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {  // word 4 q + i of rows 0-3, 4-7, 8-11, 12-15 is in quarter q of b[i], b[i + 4], ...
    const __m512i low = _mm512_shuffle_i32x4(b[i], b[i + 4], 0x88), low2 = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(b[i], b[i + 4], 0xdd), high2 = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_i32x4(low, low2, 0x88);
    rows[8 + i] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    rows[4 + i] = _mm512_shuffle_i32x4(high, high2, 0x88);
    rows[12 + i] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
}

// The scales of a block, 16 or (of each 32 k, in every other place) eight; and its d's bits.
template <PackedForm kForm>
TESSERA_INLINE std::uint16_t open_head(const std::byte* block, std::size_t n, OpenTile& to) {
  const auto put = [&](std::size_t j, std::uint32_t scale) TESSERA_LAMBDA { to.scale[j][n] = static_cast<std::int32_t>(2 * scale + 1); };
  if constexpr (kForm == PackedForm::kept_iq1_m) {
    std::uint32_t d = 0;
    for (std::size_t w = 0; w < 4; ++w) {
      const std::uint32_t word = value_at<std::uint16_t>(block + 48 + 2 * w);
      d |= word >> 12 << (4 * w);
      for (std::size_t i = 0; i < 4; ++i) put(4 * w + i, word >> (3 * i) & 7u);
    }
    return static_cast<std::uint16_t>(d);
  } else if constexpr (kForm == PackedForm::kept_iq2_xs || kForm == PackedForm::kept_iq2_s) {
    const auto nibbles = value_at<std::uint64_t>(block + (kForm == PackedForm::kept_iq2_xs ? 66 : 74));
    for (std::size_t j = 0; j < 16; ++j) put(j, static_cast<std::uint32_t>(nibbles >> (4 * j) & 15u));
  } else {
    for (std::size_t j = 0; j < 8; ++j) {
      if constexpr (kForm == PackedForm::kept_iq3_s) put(2 * j, value_at<std::uint32_t>(block + 106) >> (4 * j) & 15u);
      if constexpr (kForm == PackedForm::kept_iq3_xxs) put(2 * j, value_at<std::uint32_t>(block + 66 + 4 * j) >> 28);
      if constexpr (kForm == PackedForm::kept_iq2_xxs) put(2 * j, value_at<std::uint32_t>(block + 6 + 8 * j) >> 28);
      if constexpr (kForm == PackedForm::kept_iq1_s) put(2 * j, value_at<std::uint16_t>(block + 34 + 2 * j) >> 12 & 7u);
    }
  }
  return value_at<std::uint16_t>(block);
}

template <PackedForm kForm>
TESSERA_INLINE void open_grid(const Grids& grids, const std::byte* tile, OpenTile& to) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes / kPanel;
  constexpr bool kMoved = kForm == PackedForm::kept_iq1_s || kForm == PackedForm::kept_iq1_m;
  constexpr float kFactor = kForm == PackedForm::kept_iq3_s ? 1.0f : kForm == PackedForm::kept_iq3_xxs ? 0.25f : 0.125f;
  std::uint16_t d[kPanel];
  for (std::size_t n = 0; n < kPanel; ++n) d[n] = open_head<kForm>(tile + n * kBytes, n, to);
  store(to.d[0], load_f16(reinterpret_cast<const std::byte*>(d)) * broadcast(kFactor));
  for (std::size_t c = 0; c < 4; ++c) {
    alignas(64) Points points[kPanel];
    for (std::size_t n = 0; n < kPanel; ++n) find_points<kForm>(grids, tile + n * kBytes, c, points[n]);
    __m512i rows[kPanel];
    TESSERA_UNROLL
    for (std::size_t n = 0; n < kPanel; ++n) {
      const __m512i values = _mm512_loadu_si512(points[n].values);
      if constexpr (kMoved) {
        const __m512i up = _mm512_add_epi8(values, _mm512_set1_epi8(1));
        rows[n] = _mm512_mask_sub_epi8(up, points[n].negative, up, _mm512_set1_epi8(2));
      } else {
        const __m512i zero = _mm512_setzero_si512();
        rows[n] = _mm512_xor_si512(_mm512_mask_sub_epi8(values, points[n].negative, zero, values), _mm512_set1_epi8(-128));
      }
    }
    transpose(rows);
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 16; ++g) _mm512_store_si512(to.q[16 * c + g], rows[g]);
  }
}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
