// Products of few rows, family cuda-f32: out = W x (+ bias), or out += W x (+ bias).
//
// Order of the sum for one row x and one output. The output's weights are stored as units, the weights that 16 bytes hold
// (packed_layout.hpp). Lane l of a warp takes units l, l + 32, l + 64, ..., and adds their products to its own sum `acc`, one after another
// in ascending order, from 0. If the format has minima, a weight is scale * q + addend, where q is the stored integer.
//
//   without minima  acc = fma(w, x, acc) for each weight, with w as the format's decode() returns it. If the last unit is filled up
//                   with zeros, these are added too.
//   with minima     acc = fma(scale * q, x, acc) and sum = sum + x for each weight, where sum starts from 0 in each unit; at the
//                   unit's end acc = fma(addend, sum, acc). With d, m, dmin, scale and min as in the file: the scale is d (blocks of
//                   32) or d * scale (superblocks), the addend is m or -(dmin * min). All four are exact.
//
// Then warp_sum() adds the lanes' sums, then the bias is added; the result is stored or added to out. Neither the number of rows nor the
// choice of the kernel changes the result.
//
// Kernels linear_few_<form>_r<R>, for R = 1, 2, 4, 8 rows at once: grid.x: tiles of R rows; grid.y: outputs / (4 * warps), rounded up
// (linear_plan.hpp). Tiles of rows that use the same weights run one right after another, so that they find the weights in L2.
#pragma once

#include <cstdint>

#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

inline constexpr unsigned kLinearThreads = 256;  // the most threads of a block, which may have any multiple of 32
inline constexpr unsigned kLinearOutputs = 4;    // outputs of a warp

enum class LinearStore : std::uint32_t { set, add };

struct LinearArgs {
  DeviceMatrix weight;
  const float* x;     // [n_rows][x_stride]
  const float* bias;  // [outputs], or nullptr
  float* out;         // [n_rows][out_stride]
  std::uint32_t n_rows;
  std::uint32_t x_stride, out_stride;  // floats
  LinearStore store;
};

}  // namespace tessera::cuda
