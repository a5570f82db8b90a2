// Q2_K: 256 values in sixteen sub-blocks of 16, 2-bit numbers with a 4-bit scale and minimum each (ggml's block_q2_K).
//   byte 0    sub-block j: scale in the low half of byte j, minimum in the high half
//   byte 16   q[64]: value 128 h + 32 s + i at bit 2 s of byte 32 h + i
//   byte 80   d, f16
//   byte 82   dmin, f16
// Decoding: value = (d * scale) * q - (dmin * min). Both products are exact in f32, the difference is rounded once.
#pragma once

#include "formats/open_blocks.hpp"

#include <tessera/core/dtype.hpp>

namespace tessera::formats {

struct Q2_K {
  static constexpr DType dtype = DType::q2_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 84;
  static constexpr PackedForm packed_form = PackedForm::kept_q2_k;

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
};

}  // namespace tessera::formats
