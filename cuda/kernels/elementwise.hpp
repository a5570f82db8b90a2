// Arguments of the kernels that are neither products nor attention. Rows are [rows, columns] of f32, row-major; each
// block has a row (grid.x), and what it computes follows from that row alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

inline constexpr unsigned kRowThreads = 256;

// out = norm(in) * weight (+ bias); `out` may be `in`. Sums: each thread's elements, 256 apart, in ascending order by
// fused steps; then the 32 lanes of a warp (warp_sum), then the eight warps in ascending order.
struct NormArgs {
  const float* in;
  const float* weight;  // [columns]
  const float* bias;    // [columns], or nullptr
  float* out;
  std::uint32_t columns;
  float eps;
};

// x += y; `y_stride` is 0 for a bias, which all rows share, else the columns.
struct AddArgs {
  const float* y;
  float* x;
  std::uint32_t columns;
  std::uint32_t y_stride;
};

// x *= factor.
struct ScaleArgs {
  float* x;
  std::uint32_t columns;
  float factor;
};

// out = act(in), or act(in) * out for the gated ones.
struct ActivateArgs {
  const float* in;
  float* out;
  std::uint32_t columns;
};

// Row i of out = row rows[i] of in. In place (compact_rows) the rows ascend, and a thread owns its columns.
struct GatherArgs {
  const std::uint32_t* rows;  // [n_rows]
  const float* in;
  float* out;
  std::uint32_t n_rows;
  std::uint32_t columns;
};

}  // namespace tessera::cuda
