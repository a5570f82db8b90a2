// Q5_0: 32 values as 5-bit numbers from -16 to 15 with one scale (ggml's block_q5_0).
//   byte 0   d, f16
//   byte 2   h, 32 bits: bit i is the fifth bit of value i
//   byte 6   q[16]: the low four bits of value i in the low half of byte i, of value i + 16 in the high half
// Decoding: value = d * (q - 16). The factors have 11 and 5 significant bits, so the product is exact in f32, with any compiler flags.
// Encoding (ggml's quantize_row_q5_0_ref): d = m / -16, where m is the first value of the largest magnitude. q = floor(x * (1 / d) + 16.5),
// at most 31, where d is not rounded to f16 yet. NaN counts as 0, and values beyond 16 * 65504 saturate.
#pragma once

#include <cstddef>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"
#include "formats/weighted_blocks.hpp"

namespace tessera::formats {

struct Q5_0 {
  static constexpr DType dtype = DType::q5_0;
  static constexpr std::size_t block_values = 32;
  static constexpr std::size_t block_bytes = 22;
  static constexpr PackedForm packed_form = PackedForm::block32_5;
  static constexpr Writing writing = {.file_type = 8, .fallback = DType::f16};

  static void unpack(const std::byte* block, Block32& parts) noexcept {
    parts.d = detail::load_u16(block);
    detail::unpack_nibbles(block + 6, parts.q);
    detail::unpack_fifth_bits(block + 2, parts.q);
  }

  static void decode(const std::byte* block, float* values) noexcept {
    Block32 parts;
    unpack(block, parts);
    const float d = f16_to_f32(parts.d);
    for (std::size_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(parts.q[i] - 16);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    detail::Quants<32> q;
    if (importance != nullptr) {
      detail::store_f16(block, detail::weighted_scale<16>(values, importance, q));
    } else {
      float x[32];
      detail::load_finite(values, x);
      const float d = detail::half_range(detail::largest(x) / -16.0f);
      detail::store_f16(block, d);
      detail::rescale(x, 0, detail::reciprocal(d));
      for (std::size_t i = 0; i < 32; ++i) q[i] = detail::quant(x[i] + 16.5f, 31);
    }
    detail::pack_fifth_bits(q, block + 2);
    detail::pack_nibbles(q, block + 6);
  }
};

}  // namespace tessera::formats
