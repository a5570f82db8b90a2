// Opens a tile of a packed form that keeps the file's blocks: decodes it to integers and scales, which kernels multiply. This is portable
// code, one rule for each format. Kernels of all instruction sets call it for the forms that they do not open with instructions of their
// own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/products/packed_layout.hpp"

namespace tessera::cpu {

// An opened tile: the weights of 16 outputs (an output in each lane) for the values of k of one block. Values of the weights
// (formats/packed_form.hpp):
//   small blocks  d * (q - 128), with one d for each 16 values of k
//   superblocks   (d * scale) * (q - 128) - dmin * min, with one scale and one min for each 16 values of k
struct alignas(64) OpenTile {
  std::uint8_t q[64][kPanel][4];  // [group of four values of k][output][value of k in the group]
  std::int32_t scale[16][kPanel];  // superblocks: one for each 16 values of k
  std::int32_t min[16][kPanel];    // Q2_K: one for each 16 values of k
  float d[4][kPanel];              // small blocks: one for each 16 values of k; superblocks: only d[0]
  float dmin[kPanel];
};

// The formats' grids (formats/quants/codebooks.hpp), for kernels that open tiles themselves.
struct Grids {
  const std::uint64_t *iq2_xxs, *iq2_xs, *iq2_s, *iq1;
  const std::uint32_t *iq3_xxs, *iq3_s;
};
[[nodiscard]] Grids grids() noexcept;

// keep_block() writes the file's block of output n into a tile (lane_tiles.hpp); kept_block() reads it back from the tile.
void keep_block(PackedForm form, const std::byte* block, std::size_t n, std::byte* tile) noexcept;
void kept_block(PackedForm form, const std::byte* tile, std::size_t n, std::byte* block) noexcept;

void open_tile(PackedForm form, const std::byte* tile, OpenTile& to) noexcept;

// Decodes a tile to f32  [block_values][16].
void decode_kept_tile(PackedForm form, const std::byte* tile, float* out) noexcept;

}  // namespace tessera::cpu
