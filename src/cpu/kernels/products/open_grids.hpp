// Opens tiles of the IQ1, IQ2 and IQ3 formats (decodes them to integers and scales) with AVX-512, with the same result as open_tile().
// Points are looked up (grid_points.hpp), and the values of 16 outputs are transposed, so that each output is a lane.
#pragma once

#include "cpu/kernels/products/grid_points.hpp"

namespace tessera::cpu::TESSERA_ISA {

#if defined(__AVX512F__)

// Transposes 16 rows of 16 words: row i of the result has word i of each row. Done by pairs, by fours, then by quarters of registers.
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

template <PackedForm kForm>
TESSERA_INLINE void open_grid(const Grids& grids, const std::byte* tile, OpenTile& to) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes / kPanel;
  constexpr bool kMoved = kForm == PackedForm::kept_iq1_s || kForm == PackedForm::kept_iq1_m;
  alignas(16) std::uint8_t scales[kPanel][16];
  for (std::size_t n = 0; n < kPanel; ++n) _mm_store_si128(reinterpret_cast<__m128i*>(scales[n]), scales_of<kForm>(tile + n * kBytes));
  for (std::size_t j = 0; j < 16; ++j) {
    for (std::size_t n = 0; n < kPanel; ++n) to.scale[j][n] = scales[n][j];
  }
  store(to.d[0], grid_d<kForm>(tile));
  for (std::size_t c = 0; c < 4; ++c) {
    __m512i rows[kPanel];
    TESSERA_UNROLL
    for (std::size_t n = 0; n < kPanel; ++n) {
      const __m512i values = points_at<kForm>(grids, tile + n * kBytes, c);
      const __mmask64 negative = negative_at<kForm>(tile + n * kBytes, c);
      if constexpr (kMoved) {
        const __m512i up = _mm512_add_epi8(values, _mm512_set1_epi8(1));
        rows[n] = _mm512_mask_sub_epi8(up, negative, up, _mm512_set1_epi8(2));
      } else {
        const __m512i zero = _mm512_setzero_si512();
        rows[n] = _mm512_xor_si512(_mm512_mask_sub_epi8(values, negative, zero, values), _mm512_set1_epi8(-128));
      }
    }
    transpose(rows);
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 16; ++g) _mm512_store_si512(to.q[16 * c + g], rows[g]);
  }
}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
