// IQ2_XXS, IQ2_XS and IQ2_S: 256 values (ggml's block_iq2_xxs, block_iq2_xs, block_iq2_s), in 32 groups of eight consecutive values.
// The magnitudes of a group's values are a point of a grid: one entry of a table of 256, 512 or 1024 entries. The block stores the
// entry's index. Signs are stored separately. Scales have four bits.
//
// IQ2_XXS  byte 0    d, f16
//          byte 2    eight bytes for each 32 values (four groups): first four bytes, the indices of the groups; then a u32: the signs of
//                    group g (0 to 3) in 7 bits at bit 7 g (even_signs()), and the scale at bit 28
// IQ2_XS   byte 0    d, f16
//          byte 2    u16 for each group: the index, and from bit 9 on the signs in 7 bits
//          byte 66   the scales: that of values 16 j to 16 j + 15 at bit 4 (j mod 2) of byte j / 2
// IQ2_S    byte 0    d, f16
//          byte 2    grid[32], the low eight bits of each group's index
//          byte 34   signs[32]: the sign of value i at bit i mod 8 of byte i / 8
//          byte 66   the high two bits of the index of group g at bit 2 (g mod 4) of byte g / 4
//          byte 74   scales, as IQ2_XS
// Decoding: value = (d / 8 * (2 scale + 1)) * point, exact in f32, since the factors have 11, 5 and 6 significant bits.
#pragma once

#include "formats/open_blocks.hpp"
#include "formats/quants/codebooks.hpp"

#include <tessera/core/dtype.hpp>

namespace tessera::formats {

namespace detail {

inline void open_scales(const std::byte* at, OpenSuperblock& to) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    to.scale[j] = static_cast<std::int8_t>(2 * (byte_at(at + j / 2) >> (j % 2 * 4) & 15u) + 1);
  }
}

}  // namespace detail

struct IQ2_XXS {
  static constexpr DType dtype = DType::iq2_xxs;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 66;
  static constexpr PackedForm packed_form = PackedForm::kept_iq2_xxs;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block) * 0.125f;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::byte* at = block + 2 + 8 * j;
      const std::uint32_t more = detail::load_u32(at + 4);
      to.scale[2 * j] = to.scale[2 * j + 1] = static_cast<std::int8_t>(2 * (more >> 28) + 1);
      for (unsigned g = 0; g < 4; ++g) {
        const unsigned signs = detail::even_signs(more >> (7 * g) & 127u);
        detail::store_eight(to.q.data() + 32 * j + 8 * g,
                            detail::signed_values(detail::kGridIq2xxs[detail::byte_at(at + g)], signs));
      }
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

struct IQ2_XS {
  static constexpr DType dtype = DType::iq2_xs;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 74;
  static constexpr PackedForm packed_form = PackedForm::kept_iq2_xs;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block) * 0.125f;
    detail::open_scales(block + 66, to);
    for (std::size_t g = 0; g < 32; ++g) {
      const unsigned both = detail::load_u16(block + 2 + 2 * g);
      detail::store_eight(to.q.data() + 8 * g,
                          detail::signed_values(detail::kGridIq2xs[both & 511u], detail::even_signs(both >> 9)));
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

struct IQ2_S {
  static constexpr DType dtype = DType::iq2_s;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 82;
  static constexpr PackedForm packed_form = PackedForm::kept_iq2_s;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block) * 0.125f;
    detail::open_scales(block + 74, to);
    for (std::size_t g = 0; g < 32; ++g) {
      const unsigned high = detail::byte_at(block + 66 + g / 4) >> (g % 4 * 2) & 3u;
      const unsigned point = detail::byte_at(block + 2 + g) | high << 8;
      detail::store_eight(to.q.data() + 8 * g,
                          detail::signed_values(detail::kGridIq2s[point], detail::byte_at(block + 34 + g)));
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

}  // namespace tessera::formats
