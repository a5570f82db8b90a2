// Tiles of forms that keep the file's blocks, opened: what their kernels multiply by. The formats' own rules do that, in
// portable code that all instruction sets share: plain functions, which kernels call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/products/packed_layout.hpp"

namespace tessera::cpu {

// Lanes are outputs. value = d * (q - 128) for each 16 k of small blocks, (d * scale) * (q - 128) - dmin * min of
// superblocks (formats/packed_form.hpp).
struct alignas(64) OpenTile {
  std::uint8_t q[64][kPanel][4];  // of four k a group
  std::int32_t scale[16][kPanel];  // superblocks: of each 16 k
  std::int32_t min[16][kPanel];    // likewise, of Q2_K
  float d[4][kPanel];              // small blocks: of each 16 k; superblocks: the first
  float dmin[kPanel];
};

// The formats' grids (formats/quants/codebooks.hpp), for kernels that open tiles themselves.
struct Grids {
  const std::uint64_t *iq2_xxs, *iq2_xs, *iq2_s, *iq1;
  const std::uint32_t *iq3_xxs, *iq3_s;
};
[[nodiscard]] Grids grids() noexcept;

// Puts the file's block of output n of a tile where it belongs (lane_tiles.hpp), and makes the file's block again.
void keep_block(PackedForm form, const std::byte* block, std::size_t n, std::byte* tile) noexcept;
void kept_block(PackedForm form, const std::byte* tile, std::size_t n, std::byte* block) noexcept;

void open_tile(PackedForm form, const std::byte* tile, OpenTile& to) noexcept;

// As f32  [block_values][16].
void decode_kept_tile(PackedForm form, const std::byte* tile, float* out) noexcept;

}  // namespace tessera::cpu
