// IQ3_XXS and IQ3_S: 256 values (ggml's block_iq3_xxs and block_iq3_s), in 64 groups of four consecutive values. The magnitudes
// of a group's values are a point of a grid: one entry of a table of 256 or 512 entries. The block stores the entry's index. Signs are
// stored separately. Each 32 values have a scale of four bits.
//
// IQ3_XXS  byte 0    d, f16
//          byte 2    grid[64], each group's index
//          byte 66   u32 for each 32 values: for g = 0 to 3, the signs of values 8 g to 8 g + 7 of the 32 in 7 bits at bit 7 g
//                    (even_signs()); the scale at bit 28
//          value = (d / 4 * (2 scale + 1)) * point
// IQ3_S    byte 0    d, f16
//          byte 2    grid[64], the low eight bits of each group's index
//          byte 66   the ninth bits of the indices: that of group i at bit i mod 8 of byte i / 8
//          byte 74   signs[32]: the sign of value i at bit i mod 8 of byte i / 8
//          byte 106  the scales: that of values 32 j to 32 j + 31 at bit 4 (j mod 2) of byte j / 2
//          value = (d * (2 scale + 1)) * point
// The factors have 11, 5 and 5 significant bits (62 is twice 31), so all products are exact in f32.
#pragma once

#include "formats/open_blocks.hpp"
#include "formats/quants/codebooks.hpp"

#include <tessera/core/dtype.hpp>

namespace tessera::formats {

struct IQ3_XXS {
  static constexpr DType dtype = DType::iq3_xxs;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 98;
  static constexpr PackedForm packed_form = PackedForm::kept_iq3_xxs;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block) * 0.25f;
    const std::byte* grid = block + 2;
    std::uint8_t* q = to.q.data();
    for (std::size_t j = 0; j < 8; ++j) {
      const std::uint32_t more = detail::load_u32(block + 66 + 4 * j);
      to.scale[2 * j] = to.scale[2 * j + 1] = static_cast<std::int8_t>(2 * (more >> 28) + 1);
      for (unsigned g = 0; g < 4; ++g, grid += 2, q += 8) {
        const auto points = detail::both(detail::kGridIq3xxs[detail::byte_at(grid)], detail::kGridIq3xxs[detail::byte_at(grid + 1)]);
        detail::store_eight(q, detail::signed_values(points, detail::even_signs(more >> (7 * g) & 127u)));
      }
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

struct IQ3_S {
  static constexpr DType dtype = DType::iq3_s;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 110;
  static constexpr PackedForm packed_form = PackedForm::kept_iq3_s;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block);
    for (std::size_t j = 0; j < 8; ++j) {
      const unsigned scale = detail::byte_at(block + 106 + j / 2) >> (j % 2 * 4) & 15u;
      to.scale[2 * j] = to.scale[2 * j + 1] = static_cast<std::int8_t>(2 * scale + 1);
    }
    for (std::size_t g = 0; g < 32; ++g) {
      const unsigned ninth = detail::byte_at(block + 66 + g / 4) >> (g % 4 * 2);
      const unsigned first = detail::byte_at(block + 2 + 2 * g) | (ninth & 1u) << 8;
      const unsigned second = detail::byte_at(block + 3 + 2 * g) | (ninth & 2u) << 7;
      const auto points = detail::both(detail::kGridIq3s[first], detail::kGridIq3s[second]);
      detail::store_eight(to.q.data() + 8 * g, detail::signed_values(points, detail::byte_at(block + 74 + g)));
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

}  // namespace tessera::formats
