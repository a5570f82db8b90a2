// Plans the launch of a product of few rows. The plan changes no bits (kernels/products/linear_few.hpp).
#pragma once

#include <bit>
#include <cstdint>

#include "cuda/kernels/products/linear_few.hpp"

namespace tessera::cuda {

struct LinearPlan {
  unsigned rows_at_once;  // R of the kernel linear_few_<form>_r<R>
  unsigned grid_x, grid_y;
  unsigned threads;
};

inline constexpr unsigned kMostRowsAtOnce = 8;

// Returns the plan for a product of few rows: as few passes over the weights as possible, and with this number of passes as few rows a pass
// as possible. A block has eight warps, which share their rows in shared memory. Exception: if the device would get fewer blocks than it
// has multiprocessors, blocks have four warps or two, so that there are more blocks.
[[nodiscard]] constexpr LinearPlan plan_linear_few(std::uint32_t n_rows, std::uint32_t outputs,
                                                   unsigned multiprocessors) noexcept {
  const std::uint32_t passes = (n_rows + kMostRowsAtOnce - 1) / kMostRowsAtOnce;
  const unsigned at_once = std::bit_ceil((n_rows + passes - 1) / passes);
  unsigned warps = kLinearThreads / 32;
  const auto blocks = [&] { return (outputs + warps * kLinearOutputs - 1) / (warps * kLinearOutputs); };
  while (warps > 2 && blocks() * passes < multiprocessors) warps /= 2;
  return {
      .rows_at_once = at_once, .grid_x = (n_rows + at_once - 1) / at_once, .grid_y = blocks(), .threads = warps * 32};
}

}  // namespace tessera::cuda
