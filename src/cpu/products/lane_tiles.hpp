// The order of bytes in the tiles of packed forms that keep the file's blocks (a tile has the blocks of 16 outputs for the same values of
// k). There are two orders:
// - In the order of lanes, for the forms that lane_parts() lists. A block is cut into units of one, two or four bytes. The tile has unit 0
//   of all 16 outputs, then unit 1 of all 16 outputs, and so on. So one load gives each lane the unit of its output, and vectors of every
//   instruction set can open these tiles.
// - Whole blocks, one after another, for the other kept forms, whose values are looked up eight or four at a time.
#pragma once

#include <cstddef>

#include "cpu/products/packed_layout.hpp"

namespace tessera::cpu {

// A part of a block in the file: `count` units of `bytes` bytes each, from byte `at` of the block on.
struct BlockPart {
  std::size_t at = 0, bytes = 0, count = 0;
};

struct LaneParts {
  BlockPart parts[4] = {};  // in a tile's order; none: the tile has whole blocks
  std::size_t n = 0;

  // Returns the offset of part p in a tile.
  [[nodiscard, gnu::always_inline]] constexpr std::size_t begin(std::size_t p) const noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i < p; ++i) at += parts[i].bytes * parts[i].count * kPanel;
    return at;
  }
};

[[nodiscard, gnu::always_inline]] constexpr LaneParts lane_parts(PackedForm form) noexcept {
  switch (form) {
    case PackedForm::kept_iq4_nl: return {{{0, 2, 1}, {2, 4, 4}}, 2};
    case PackedForm::kept_mxfp4: return {{{0, 1, 1}, {1, 4, 4}}, 2};
    case PackedForm::kept_nvfp4: return {{{0, 1, 4}, {4, 4, 8}}, 2};
    case PackedForm::kept_iq4_xs: return {{{0, 2, 1}, {2, 2, 1}, {4, 4, 1}, {8, 4, 32}}, 4};
    case PackedForm::kept_q3_k: return {{{108, 2, 1}, {96, 4, 3}, {0, 4, 8}, {32, 4, 16}}, 4};
    case PackedForm::kept_q2_k: return {{{80, 2, 1}, {82, 2, 1}, {0, 4, 4}, {16, 4, 16}}, 4};
    case PackedForm::kept_tq1_0: return {{{52, 2, 1}, {0, 4, 12}, {48, 4, 1}}, 3};
    case PackedForm::kept_tq2_0: return {{{64, 2, 1}, {0, 4, 16}}, 2};
    default: return {};
  }
}

}  // namespace tessera::cpu
