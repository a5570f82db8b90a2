// Q4_1: 32 values as 4-bit numbers from 0 to 15, with a scale and a minimum (ggml's block_q4_1).
//   byte 0   d, f16
//   byte 2   m, f16
//   byte 4   q[16]: value i in the low half of byte i, value i + 16 in the high half
// Decoding: value = d * q + m. The product is exact in f32 (11 and 4 significant bits) and only the sum is rounded, so the result is the
// same with or without fused multiply-add.
// Encoding (ggml's quantize_row_q4_1_ref): m = min x, d = (max x - m) / 15. q = floor((x - m) * (1 / d) + 0.5), at most 15, where m and d
// are not rounded to f16 yet. NaN counts as 0; m and d saturate at 65504.
#pragma once

#include <cstddef>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"
#include "formats/weighted_blocks.hpp"

namespace tessera::formats {

struct Q4_1 {
  static constexpr DType dtype = DType::q4_1;
  static constexpr std::size_t block_values = 32;
  static constexpr std::size_t block_bytes = 20;
  static constexpr PackedForm packed_form = PackedForm::block32_4_min;
  static constexpr Writing writing = {.file_type = 3, .fallback = DType::f16};

  static void unpack(const std::byte* block, Block32& parts) noexcept {
    parts.d = detail::load_u16(block);
    parts.m = detail::load_u16(block + 2);
    detail::unpack_nibbles(block + 4, parts.q);
  }

  static void decode(const std::byte* block, float* values) noexcept {
    Block32 parts;
    unpack(block, parts);
    const float d = f16_to_f32(parts.d), m = f16_to_f32(parts.m);
    for (std::size_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(parts.q[i]) + m;
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    detail::Quants<32> q;
    if (importance != nullptr) {
      const detail::Line line = detail::weighted_line(values, importance, 15.0f, q);
      detail::store_f16(block, line.scale);
      detail::store_f16(block + 2, -line.min);
    } else {
      float x[32];
      detail::load_finite(values, x);
      const detail::Range range = detail::range_of(x);
      const float m = detail::half_range(range.min);
      const float d = detail::half_range((range.max - m) / 15.0f);
      detail::store_f16(block, d);
      detail::store_f16(block + 2, m);
      detail::rescale(x, m, detail::reciprocal(d));
      for (std::size_t i = 0; i < 32; ++i) q[i] = detail::quant(x[i] + 0.5f, 15);
    }
    detail::pack_nibbles(q, block + 4);
  }
};

}  // namespace tessera::formats
