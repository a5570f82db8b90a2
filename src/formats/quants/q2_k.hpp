// Q2_K: 256 values in sixteen sub-blocks of 16, 2-bit numbers with a 4-bit scale and minimum each (ggml's block_q2_K).
//   byte 0    sub-block j: scale in the low half of byte j, minimum in the high half
//   byte 16   64 bytes: q of value 128 h + 32 s + i (h = 0 to 1, s = 0 to 3, i = 0 to 31) in two bits at bit 2 s of byte 32 h + i
//   byte 80   d, f16
//   byte 82   dmin, f16
// Decoding: value = (d * scale) * q - (dmin * min). Both products are exact in f32, and only the difference is rounded.
// Encoding: the search of k_quants.hpp. Without importance a value's weight is |x| plus a quarter of the sub-block's root mean square. The
// squared error is smaller than with ggml's |x|, also for the large values. NaN counts as 0, and values out of range saturate.
#pragma once

#include <cmath>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/open_blocks.hpp"
#include "formats/quants/k_quants.hpp"

namespace tessera::formats {

struct Q2_K {
  static constexpr DType dtype = DType::q2_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 84;
  static constexpr PackedForm packed_form = PackedForm::kept_q2_k;
  static constexpr Writing writing = {.file_type = 10, .fallback = DType::q4_0};

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block + 80);
    to.dmin = detail::load_f16(block + 82);
    for (std::size_t j = 0; j < 16; ++j) {
      to.scale[j] = static_cast<std::int8_t>(detail::byte_at(block + j) & 15u);
      to.min[j] = static_cast<std::uint8_t>(detail::byte_at(block + j) >> 4);
    }
    for (std::size_t h = 0; h < 2; ++h) {
      const std::byte* at = block + 16 + 32 * h;
      std::uint8_t* q = to.q.data() + 128 * h;
      for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>((detail::byte_at(at + i) & 3u) | 128u);
      for (std::size_t i = 0; i < 32; ++i) q[32 + i] = static_cast<std::uint8_t>((detail::byte_at(at + i) >> 2 & 3u) | 128u);
      for (std::size_t i = 0; i < 32; ++i) q[64 + i] = static_cast<std::uint8_t>((detail::byte_at(at + i) >> 4 & 3u) | 128u);
      for (std::size_t i = 0; i < 32; ++i) q[96 + i] = static_cast<std::uint8_t>(detail::byte_at(at + i) >> 6 | 128u);
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<true>(parts, values);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    float x[16][16], weight[16][16];
    detail::Line line[16];
    float top_scale = 0, top_min = 0;
    const float mean_square = importance != nullptr ? detail::mean_square_of(values) : 0;
    for (std::size_t j = 0; j < 16; ++j) {
      float squares[16];
      for (std::size_t i = 0; i < 16; ++i) {
        x[j][i] = detail::searchable(values[16 * j + i]);
        squares[i] = x[j][i] * x[j][i];
      }
      const float rms = std::sqrt(detail::sum(squares) / 16.0f);
      for (std::size_t i = 0; i < 16; ++i) weight[j][i] = 0.25f * rms + detail::magnitude(x[j][i]);
      if (importance != nullptr) detail::weigh_by_importance(x[j], weight[j], importance + 16 * j, mean_square);
      line[j] = detail::fit_line(x[j], weight[j], 3.0f);
      top_scale = std::max(top_scale, line[j].scale);
      top_min = std::max(top_min, line[j].min);
    }
    const float d = detail::superblock_scale(top_scale / 15.0f), dmin = detail::superblock_scale(top_min / 15.0f);
    detail::store_f16(block + 80, d);
    detail::store_f16(block + 82, dmin);
    for (std::size_t i = 16; i < 80; ++i) block[i] = std::byte{};
    for (std::size_t j = 0; j < 16; ++j) {
      const int scale = detail::round_away(line[j].scale * detail::reciprocal(d), 15);
      const int min = detail::round_away(line[j].min * detail::reciprocal(dmin), 15);
      int best_scale = scale, best_min = min;
      float least = -1;
      for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, 15); ++s) {
        for (int m = std::max(min - 1, 0); m <= std::min(min + 1, 15); ++m) {
          const detail::Line tried{d * static_cast<float>(s), dmin * static_cast<float>(m)};
          const float error = detail::line_error(x[j], weight[j], tried, 3.0f);
          if (least >= 0 && !(error < least)) continue;
          least = error;
          best_scale = s;
          best_min = m;
        }
      }
      block[j] = static_cast<std::byte>(best_scale | best_min << 4);
      const float inverse = detail::reciprocal(d * static_cast<float>(best_scale)), offset = dmin * static_cast<float>(best_min);
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t at = 16 * j + i;
        const auto q = static_cast<unsigned>(detail::nearest_level((x[j][i] + offset) * inverse, 3.0f));
        block[16 + 32 * (at / 128) + at % 32] |= static_cast<std::byte>(q << (at / 32 % 4 * 2));
      }
    }
  }
};

}  // namespace tessera::formats
