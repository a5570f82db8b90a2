// IQ1_S and IQ1_M: 256 values (ggml's block_iq1_s and block_iq1_m), in 32 groups of eight consecutive values. A group's values are a point
// of a grid: one of 2048 entries of a table, with the numbers -1, 0 and 1. The block stores the entry's index. All eight values of a group
// are moved up or down by an eighth. Scales have three bits.
//
// IQ1_S  byte 0    d, f16
//        byte 2    grid[32], the low eight bits of each group's index
//        byte 34   u16 for each 32 values (four groups): the high three bits of the index of group g (0 to 3) at bit 3 g, the scale at bit
//                  12; bit 15 is set if the values are moved down
// IQ1_M  byte 0    grid[32], the low eight bits of each group's index
//        byte 32   four bits for group g, at bit 4 (g mod 2) of byte g / 2: the high three bits of the index; then a bit that is set if the
//                  values are moved down
//        byte 48   four u16, each for 64 values. Bits 0 to 11: four scales of three bits, each for 16 values, at bits 0, 3, 6, 9. Bits 12
//                  to 15: four of the 16 bits of d (f16); the first u16 has the lowest four bits of d, the last u16 the highest four
// Decoding: value = (d / 8 * (2 scale + 1)) * (8 point + 1); if the values are moved down, with (8 point - 1). Exact in f32,
// since the factors have 11, 4 and 4 significant bits.
#pragma once

#include "formats/open_blocks.hpp"
#include "formats/quants/codebooks.hpp"

#include <tessera/core/dtype.hpp>

namespace tessera::formats {

namespace detail {

// Returns the eight values of a point of IQ1, moved up or down, plus 128 each.
[[nodiscard]] inline std::uint64_t moved_point(unsigned point, bool down) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  return down ? kGridIq1[point] - ones : kGridIq1[point] + ones;
}

}  // namespace detail

struct IQ1_S {
  static constexpr DType dtype = DType::iq1_s;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 50;
  static constexpr PackedForm packed_form = PackedForm::kept_iq1_s;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block) * 0.125f;
    for (std::size_t j = 0; j < 8; ++j) {
      const unsigned more = detail::load_u16(block + 34 + 2 * j);
      to.scale[2 * j] = to.scale[2 * j + 1] = static_cast<std::int8_t>(2 * (more >> 12 & 7u) + 1);
      for (std::size_t g = 0; g < 4; ++g) {
        const unsigned point = detail::byte_at(block + 2 + 4 * j + g) | (more >> (3 * g) & 7u) << 8;
        detail::store_eight(to.q.data() + 32 * j + 8 * g, detail::moved_point(point, (more & 0x8000u) != 0));
      }
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

struct IQ1_M {
  static constexpr DType dtype = DType::iq1_m;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 56;
  static constexpr PackedForm packed_form = PackedForm::kept_iq1_m;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    unsigned d = 0;
    for (std::size_t w = 0; w < 4; ++w) {
      const unsigned word = detail::load_u16(block + 48 + 2 * w);
      d |= word >> 12 << (4 * w);
      for (std::size_t i = 0; i < 4; ++i) {
        to.scale[4 * w + i] = static_cast<std::int8_t>(2 * (word >> (3 * i) & 7u) + 1);
      }
    }
    to.d = f16_to_f32(static_cast<std::uint16_t>(d)) * 0.125f;
    for (std::size_t g = 0; g < 32; ++g) {
      const unsigned more = detail::byte_at(block + 32 + g / 2) >> (g % 2 * 4);
      const unsigned point = detail::byte_at(block + g) | (more & 7u) << 8;
      detail::store_eight(to.q.data() + 8 * g, detail::moved_point(point, (more & 8u) != 0));
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

}  // namespace tessera::formats
