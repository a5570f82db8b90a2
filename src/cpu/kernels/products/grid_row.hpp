// The product of one row with weights in IQ2 and IQ3 formats, with AVX-512. A general kernel first opens a tile: it writes the integers
// of 16 outputs to memory, transposed so that each output is a lane. That pays if several rows use the tile. For one row this kernel
// multiplies 64 values of one output at a time, directly as the lookup in the grid returns them. The grid has magnitudes only. If a
// weight is negative, the kernel negates the row's byte by which the weight is multiplied. The sum over a superblock is a sum of
// integers, so it has the same bits in any order.
#pragma once

#include "cpu/kernels/products/grid_points.hpp"
#include "cpu/kernels/products/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr bool has_grid_row(PackedForm form) { return has_grid(form) && form < PackedForm::kept_iq1_m; }

#if defined(__AVX512F__)

// Indices for _mm512_shuffle_epi8. They copy the four scales of quarter c (64 values) from a superblock's sixteen scales. Each scale is
// one byte. It goes to four consecutive 32-bit lanes, to both 16-bit words of each lane.
struct ScaleWords {
  std::uint8_t at[64];

  explicit constexpr ScaleWords(std::size_t c) : at() {
    for (std::size_t i = 0; i < 64; ++i) at[i] = static_cast<std::uint8_t>(i % 2 == 0 ? 4 * c + i / 16 : 0x80);
  }
};
alignas(64) constexpr ScaleWords kScaleWords[4] = {ScaleWords(0), ScaleWords(1), ScaleWords(2), ScaleWords(3)};

// Returns a vector whose lane n is the sum of all lanes of sums[n].
TESSERA_INLINE I32x16 lane_sums(I32x16 (&sums)[16]) {
  const auto pair = [](__m512i a, __m512i b) TESSERA_LAMBDA { return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)); };
  const auto four = [](__m512i a, __m512i b) TESSERA_LAMBDA { return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)); };
  __m512i fours[4];  // each quarter of fours[i] has sums of outputs 4 i to 4 i + 3
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {
    const auto at = [&](std::size_t n) TESSERA_LAMBDA { return (__m512i)sums[4 * i + n].r[0]; };
    fours[i] = four(pair(at(0), at(1)), pair(at(2), at(3)));
  }
  const auto halves = [](__m512i a, __m512i b) TESSERA_LAMBDA {  // adds quarters 0 + 1 and 2 + 3 of a, then of b
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  return {{(native::I)halves(halves(fours[0], fours[1]), halves(fours[2], fours[3]))}};
}

template <PackedForm kForm>
TESSERA_INLINE void multiply_grid_row(const LinearJob& job, const Grids& grids, const std::byte* tile, std::size_t k, F32x16& acc) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes / kPanel;
  alignas(16) std::uint8_t scales[kPanel][16];
  TESSERA_UNROLL
  for (std::size_t n = 0; n < kPanel; ++n) _mm_store_si128(reinterpret_cast<__m128i*>(scales[n]), scales_of<kForm>(tile + n * kBytes));
  I32x16 sums[kPanel];
  TESSERA_UNROLL
  for (std::size_t n = 0; n < kPanel; ++n) sums[n] = broadcast(0);
  for (std::size_t c = 0; c < 4; ++c) {
    const __m512i x = _mm512_loadu_si512(job.x + k + 64 * c), words = _mm512_load_si512(kScaleWords[c].at);
    TESSERA_UNROLL
    for (std::size_t n = 0; n < kPanel; ++n) {
      const std::byte* block = tile + n * kBytes;
      const __m512i points = points_at<kForm>(grids, block, c);  // bytes of at most 62, so that the sum of two products fits 16 bits
      const __m512i with_signs = _mm512_mask_sub_epi8(x, negative_at<kForm>(block, c), _mm512_setzero_si512(), x);
      const __m512i four = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(scales[n])));
      const I32x16 scale = {{(native::I)_mm512_shuffle_epi8(four, words)}};
      sums[n] = dot2(sums[n], I32x16{{(native::I)_mm512_maddubs_epi16(points, with_signs)}}, scale);
    }
  }
  const float scale = value_at<float>(job.x + row_layout(InputForm::int8x256, job.inputs).scales + k / 256 * 4);
  acc = fma(to_float(lane_sums(sums)), grid_d<kForm>(tile) * broadcast(scale), acc);
}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
