// Products with one of several matrices of the same shape: out = W_m x (+ bias). A slot is one such product; each slot says which matrix m
// it multiplies. There are two uses: with experts, a slot is a row and one of its experts (kernels/experts.hpp); with heads, a slot is a
// row and one of its heads, each of which has its own matrix. The order of sums is that of linear_few.hpp, so a slot's result depends only
// on its own x. If matrices have factors, the product is multiplied by the factor of its matrix before the bias is added.
//
// Kernels linear_slots_<form>_r<R>, for tiles of up to R = 1 or 4 slots of one matrix: grid.x: tiles; grid.y: outputs / (4 * warps),
// rounded up.
//   experts   `tiles` and `slots` are the lists that deal_experts makes (kernels/experts.hpp). Blocks after the last tile do nothing.
//   heads     `tiles` is nullptr. A row has a slot for each matrix: slot row * matrices + m has matrix m. Tile t has matrix
//             t % matrices, and this matrix's slots of R rows, from row t / matrices * R on.
#pragma once

#include <cstdint>

#include "cuda/kernels/experts.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

struct LinearSlotsArgs {
  DeviceMatrix weight = {};                // all matrices, one after another
  const SlotTile* tiles = nullptr;         // [n_tiles]
  const std::uint32_t* n_tiles = nullptr;  // [1]
  const std::uint32_t* slots = nullptr;    // the lists of the tiles' slots
  const float* x = nullptr;                // slot s has row s / sharing  [..][x_stride]
  const float* bias = nullptr;             // [matrices][outputs]; nullptr: none
  const float* factors = nullptr;          // [matrices]; nullptr: none
  float* out = nullptr;                    // [slots][outputs]
  std::uint32_t matrices = 1, outputs = 0;
  std::uint32_t n_rows = 0;   // heads: rows of the step
  std::uint32_t sharing = 1;  // number of consecutive slots that share one row of x
  std::uint32_t x_stride = 0;  // floats
  std::uint32_t padding = 0;
};

}  // namespace tessera::cuda
