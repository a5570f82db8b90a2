// Q8_0: 32 values as signed bytes with one scale (ggml's block_q8_0).
//   byte 0   d, f16
//   byte 2   q[32], i8
// Decoding: value = d * q. The factors have 11 and 8 significant bits, so the product is exact in f32, and no compiler flag changes it.
// Encoding (ggml's quantize_row_q8_0_ref): d = max|x| / 127. q = round(x * (1 / d)), halves rounded away from zero, where d is not rounded
// to f16 yet. NaN counts as 0, and values beyond 127 * 65504 saturate.
#pragma once

#include <cstddef>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"

namespace tessera::formats {

struct Q8_0 {
  static constexpr DType dtype = DType::q8_0;
  static constexpr std::size_t block_values = 32;
  static constexpr std::size_t block_bytes = 34;
  static constexpr PackedForm packed_form = PackedForm::block32_8;
  static constexpr Writing writing = {.file_type = 7, .fallback = DType::f16};

  static void unpack(const std::byte* block, Block32& parts) noexcept {
    parts.d = detail::load_u16(block);
    for (std::size_t i = 0; i < 32; ++i) parts.q[i] = static_cast<std::uint8_t>(block[2 + i]) ^ 0x80u;  // plus 128
  }

  static void decode(const std::byte* block, float* values) noexcept {
    const float d = detail::load_f16(block);
    const std::byte* q = block + 2;
    for (std::size_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(static_cast<std::int8_t>(q[i]));
  }

  static void encode(const float* values, std::byte* block) noexcept {
    float x[32];
    detail::load_finite(values, x);
    const float d = detail::half_range(detail::magnitude(detail::largest(x)) / 127.0f);
    detail::store_f16(block, d);
    detail::rescale(x, 0, detail::reciprocal(d));
    for (std::size_t i = 0; i < 32; ++i) block[2 + i] = static_cast<std::byte>(detail::round_away(x[i], 127));
  }
};

}  // namespace tessera::formats
