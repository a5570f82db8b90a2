// Products of few rows, family cuda-f32: out = W x (+ bias), stored or added to what is there.
//
// The order of the sum for a row and an output: lane l has the units l, l + 32, l + 64, ... of the weight's row
// (packed_layout.hpp), and one chain from 0 over them, over the values of each in ascending order:
//
//   without minima  acc = fma(w, x, acc), w being the value as the format's decode() has it. Zeros that fill the last
//                   unit take part.
//   with minima     acc = fma(scale * q, x, acc) and sum = sum + x, sum from 0 in each unit; then, at the unit's end,
//                   acc = fma(addend, sum, acc). scale is d or d * scale, addend m or -(dmin * min): all exact.
//
// Then the lanes' chains in the order of warp_sum(), + bias, and added to out. Nothing else enters: neither how many
// rows there are nor which of the kernels is taken.
//
// Kernels linear_few_<form>_r<R>, R = 1, 2, 4, 8 rows at once: grid.x: tiles of R rows; grid.y: outputs / (4 * warps),
// rounded up (linear_plan.hpp). Row tiles are neighbours in time, so that a tile finds its weights in L2.
#pragma once

#include <cstdint>

#include "cuda/packed_layout.hpp"

namespace tessera::cuda {

inline constexpr unsigned kLinearThreads = 256;  // at most; any multiple of 32
inline constexpr unsigned kLinearOutputs = 4;    // of a warp

enum class LinearStore : std::uint32_t { set, add };

struct LinearArgs {
  DeviceMatrix weight;
  const float* x;     // [n_rows][x_stride]
  const float* bias;  // [outputs], or nullptr
  float* out;         // [n_rows][out_stride]
  std::uint32_t n_rows;
  std::uint32_t x_stride, out_stride;  // in floats
  LinearStore store;
};

}  // namespace tessera::cuda
