// Products of few rows, family cuda-f32: out = W x (+ bias), or out += W x (+ bias).
//
// Order of the sum for one row and one output. The weights of an output are a row of units (packed_layout.hpp). Lane l of a warp takes
// units l, l + 32, l + 64, ... and has one chain of additions from 0 over their values, in ascending order:
//
//   without minima  acc = fma(w, x, acc), w being the weight as the format's decode() returns it. Zeros that fill the last
//                   unit take part.
//   with minima     acc = fma(scale * q, x, acc) and sum = sum + x, where sum starts from 0 in each unit; at the unit's end
//                   acc = fma(addend, sum, acc). scale is d or d * scale, addend m or -(dmin * min): all exact.
//
// Then the lanes' chains are added in the order of warp_sum(), then the bias; the result is stored or added to out. Neither the number of
// rows nor the choice of the kernel changes the result.
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
