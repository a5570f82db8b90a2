// IQ4_XS: IQ4_NL's integers, 256 of them in eight sub-blocks of 32 with a scale of six bits each (ggml's block_iq4_xs).
//   byte 0   d, f16
//   byte 2   u16: the high two bits of scale j at bit 2 j
//   byte 4   the low four bits of scale j at bit 4 (j mod 2) of byte j / 2
//   byte 8   q[128]: 16 bytes a sub-block, value i in the low half of byte i, value i + 16 in the high half
// Decoding: value = (d * (scale - 32)) * table[q], exact in f32, since the factors have 11, 5 (-32 is a power of two) and 7 significant
// bits.
// Encoding: the search of scale_search.hpp. NaN counts as 0, and values out of range saturate.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/open_blocks.hpp"
#include "formats/scale_search.hpp"

namespace tessera::formats {

struct IQ4_XS {
  static constexpr DType dtype = DType::iq4_xs;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 136;
  static constexpr PackedForm packed_form = PackedForm::kept_iq4_xs;
  static constexpr Writing writing = {.file_type = 30, .fallback = DType::iq4_nl};

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block);
    const unsigned high = detail::load_u16(block + 2);
    for (std::size_t j = 0; j < 8; ++j) {
      const unsigned low = detail::byte_at(block + 4 + j / 2) >> (j % 2 * 4) & 15u;
      const int scale = static_cast<int>(low | (high >> (2 * j) & 3u) << 4) - 32;
      to.scale[2 * j] = to.scale[2 * j + 1] = static_cast<std::int8_t>(scale);
      detail::look_up<16>(detail::kNonLinear, block + 8 + 16 * j, to.q.data() + 32 * j);
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    using Levels = detail::NonLinear;
    float x[8][32];
    const auto chosen = detail::choose_scales<Levels>(values, x, importance);
    detail::store_f16(block, chosen.d);
    for (std::size_t i = 2; i < 8; ++i) block[i] = std::byte{};
    for (std::size_t j = 0; j < 8; ++j) {
      const auto six = static_cast<unsigned>(chosen.scale[j] + 32);
      block[2 + j / 4] |= static_cast<std::byte>(six >> 4 << (j % 4 * 2));
      block[4 + j / 2] |= static_cast<std::byte>((six & 15u) << (j % 2 * 4));
      const float inverse = detail::reciprocal(chosen.d * static_cast<float>(chosen.scale[j]));
      detail::Quants<32> q;
      for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(Levels::index(x[j][i] * inverse));
      detail::pack_nibbles(q, block + 8 + 16 * j);
    }
  }
};

}  // namespace tessera::formats
