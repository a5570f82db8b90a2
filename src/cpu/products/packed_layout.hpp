// The layout of packed weights, which all kernels of products read: panels of 16 outputs side by side (f16: 32), so that the lanes of a
// kernel are outputs for vectors of any width. Constants only, because kernels of every instruction set include this file. Letters below:
// k is the index of an input; q[i] is the integer of an output's weight i in a tile; n is an output of the panel; j is one of four values
// of k; g and v are groups of four values of k; d and dmin are scales, m minima (formats/packed_form.hpp).
//
//   f32         [k][16 outputs] f32
//   f16         [k][32 outputs] f16; k padded with zeros to a multiple of 32. A kernel sums over k for two vectors of 16 outputs at a
//               time, because the additions of one vector wait for each other and would be slower than memory. With 32 outputs in a
//               panel, both vectors' weights are one stream, which is read faster than two
//   bf16        [k / 2][16 outputs][2 values of k] bf16, as products of pairs read them; k padded in the same way
//   block32     tiles of 32 values of k, one after another, each
//                 fifth bits (5 bits) [8] u64, one for each group g of four values of k: bit 4 n + j is the fifth bit
//                            of q[4 g + j] of output n
//                 low bits   4 or 5 bits: [4][16 outputs][4] bytes; byte (v, n, j) holds q[4 v + j] of output n in its low half and
//                            q[16 + 4 v + j] in its high half. 8 bits: [8][16 outputs][4] bytes; byte (g, n, j) is q[4 g + j] of output n
//                 d          [16] f16
//                 m          [16] f16, only if the form has a minimum
//   block256    tiles of 256 values of k, each
//                 scales     4 and 5 bits: [3][16 outputs] u32, the 12 bytes of scales that each output's block has in the file.
//                            6 bits: [4][16 outputs] u32, each with four scales, a signed byte each
//                 d          [16] f16
//                 dmin       [16] f16, only if the form has minima
//                 four quarters p, of 64 values of k each:
//                 fifth bits (5 bits) [16] u64, one for each group of four values of k, as above
//                 low bits   [8][16 outputs][4] bytes; byte (v, n, j) holds the low four bits of q[64 p + 4 v + j] of output n in its low
//                            half, and those of q[64 p + 32 + 4 v + j] in its high half. 6 bits: the values of v come in pairs (0 and 1,
//                            2 and 3, ...), and before the low bits of each pair come its high bits:
//                 high bits  (6 bits) [16 outputs][4] bytes for the pair v, v + 1; byte (n, j) holds the high two bits of integer j of four
//                            groups of four values of k: of group v at bit 0, v + 8 at bit 2, v + 1 at bit 4, v + 9 at bit 6
//   kept        tiles, each with the file's blocks of 16 outputs for the same values of k. The blocks lie one after another or, in some
//               forms, are cut into units (lane_tiles.hpp)
// The bytes of a tile are in the order in which they are read, because the prefetchers of CPUs follow this order. When the bits above the
// fourth were stored after all other bits, one row of Q6_K took 1.6 times as long from memory.
// If the last panel has fewer outputs, its unused lanes are zeros. Apart from this padding and that of k, a packed matrix has as many bytes
// as in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/packed_form.hpp"

namespace tessera::cpu {

using formats::PackedForm;

inline constexpr std::size_t kPanel = 16;  // outputs of a panel, or (f16) of each half of a panel

// The sizes and offsets of a form. bits 0: not quantised.
struct FormLayout {
  std::size_t outputs = kPanel;   // outputs of a panel
  std::size_t block_values = 1;   // values of k in a tile
  std::size_t tile_bytes = 0;     // bytes of a tile of one panel
  unsigned bits = 0;
  int offset = 0;                 // subtracted from each integer
  bool has_min = false;
  bool kept = false;              // keeps the file's blocks; bits, offset and has_min describe the opened tile
  std::size_t scales_at = 0, d_at = 0, min_at = 0;  // bytes from the tile's start
  std::size_t low_at = 0, more_at = 0;              // bytes from the tile's start; in superblocks: of the first quarter
  std::size_t quarter_bytes = 0;                    // bytes from one quarter's start to the next

  // Returns the offset in a tile of piece v of the low bits. A piece is 64 bytes. Superblocks: the piece of quarter p. Blocks of 32: p
  // must be 0.
  [[nodiscard, gnu::always_inline]] constexpr std::size_t low(std::size_t p, std::size_t v) const noexcept {
    return low_at + p * quarter_bytes + v * 64 + (bits == 6 ? v / 2 * 64 : 0);
  }
  // Returns the offset in a tile of the bits above the fourth, for group g of four values of k in quarter p. With 5 bits: the offset of a
  // u64, the fifth bits of group g. With 6 bits: g is below 8, and the 64 bytes at the offset have the high bits of four groups, g among
  // them (see high bits, above).
  [[nodiscard, gnu::always_inline]] constexpr std::size_t more(std::size_t p, std::size_t g) const noexcept {
    return more_at + p * quarter_bytes + (bits == 6 ? g / 2 * 192 : g * 8);
  }
};

[[nodiscard]] constexpr FormLayout block32_layout(unsigned bits, bool has_min) noexcept {
  FormLayout layout{.block_values = 32, .bits = bits, .offset = has_min ? 0 : 1 << (bits - 1), .has_min = has_min};
  layout.low_at = bits == 5 ? 64 : 0;
  layout.d_at = bits * 64;
  layout.min_at = layout.d_at + 32;
  layout.tile_bytes = layout.min_at + (has_min ? 32 : 0);
  return layout;
}

[[nodiscard]] constexpr FormLayout block256_layout(unsigned bits) noexcept {
  FormLayout layout{.block_values = 256, .bits = bits, .offset = bits == 6 ? 32 : 0, .has_min = bits != 6};
  layout.d_at = bits == 6 ? 256 : 192;
  layout.min_at = layout.d_at + 32;
  layout.more_at = layout.min_at + (layout.has_min ? 32 : 0);
  layout.low_at = layout.more_at + (bits == 5 ? 128 : bits == 6 ? 64 : 0);
  layout.quarter_bytes = bits * 128;
  layout.tile_bytes = layout.more_at + 4 * layout.quarter_bytes;
  return layout;
}

[[nodiscard]] constexpr FormLayout kept_layout(std::size_t values, std::size_t bytes, bool has_min = false) noexcept {
  return {.block_values = values, .tile_bytes = kPanel * bytes, .bits = 8, .offset = 128, .has_min = has_min, .kept = true};
}

[[nodiscard]] constexpr FormLayout form_layout(PackedForm form) noexcept {
  switch (form) {
    case PackedForm::f32: return {.block_values = 1, .tile_bytes = 64};
    case PackedForm::f16: return {.outputs = 32, .block_values = 32, .tile_bytes = 2048};
    case PackedForm::bf16: return {.block_values = 32, .tile_bytes = 1024};
    case PackedForm::block32_4: return block32_layout(4, false);
    case PackedForm::block32_4_min: return block32_layout(4, true);
    case PackedForm::block32_5: return block32_layout(5, false);
    case PackedForm::block32_5_min: return block32_layout(5, true);
    case PackedForm::block32_8: return block32_layout(8, false);
    case PackedForm::block256_4: return block256_layout(4);
    case PackedForm::block256_5: return block256_layout(5);
    case PackedForm::block256_6: return block256_layout(6);
    case PackedForm::kept_iq4_nl: return kept_layout(32, 18);
    case PackedForm::kept_mxfp4: return kept_layout(32, 17);
    case PackedForm::kept_nvfp4: return kept_layout(64, 36);
    case PackedForm::kept_iq4_xs: return kept_layout(256, 136);
    case PackedForm::kept_q3_k: return kept_layout(256, 110);
    case PackedForm::kept_q2_k: return kept_layout(256, 84, true);
    case PackedForm::kept_iq3_s: return kept_layout(256, 110);
    case PackedForm::kept_iq3_xxs: return kept_layout(256, 98);
    case PackedForm::kept_iq2_s: return kept_layout(256, 82);
    case PackedForm::kept_iq2_xs: return kept_layout(256, 74);
    case PackedForm::kept_iq2_xxs: return kept_layout(256, 66);
    case PackedForm::kept_iq1_m: return kept_layout(256, 56);
    case PackedForm::kept_iq1_s: return kept_layout(256, 50);
    case PackedForm::kept_tq2_0: return kept_layout(256, 66);
    case PackedForm::kept_tq1_0: return kept_layout(256, 54);
    case PackedForm::count: break;
  }
  return {};
}

[[nodiscard]] constexpr bool is_quantised(PackedForm form) noexcept { return form_layout(form).bits != 0; }

[[nodiscard]] constexpr std::size_t panel_outputs(PackedForm form) noexcept { return form_layout(form).outputs; }

[[nodiscard]] constexpr std::size_t panel_bytes(PackedForm form, std::size_t inputs) noexcept {
  const FormLayout layout = form_layout(form);
  return (inputs + layout.block_values - 1) / layout.block_values * layout.tile_bytes;
}

}  // namespace tessera::cpu
