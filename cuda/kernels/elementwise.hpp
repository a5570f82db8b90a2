// Arguments of the kernels that are neither products nor attention. Activations are [rows, columns] of f32, row-major. Each block computes
// one row (grid.x), and its result depends on that row alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

inline constexpr unsigned kRowThreads = 256;
inline constexpr std::uint32_t kNoRow =
    0xffffffffu;  // an index with this value: the kernel does not write the row of `out`

// out = norm(in) * weight (+ bias); `out` may be `in`. Order of sums: each thread adds up every 256th element, ascending, by fused steps;
// then the 32 lanes of a warp are added (warp_sum), then the eight warps, ascending.
struct NormArgs {
  const float* in;
  const float* weight;  // [columns]
  const float* bias;    // [columns], or nullptr
  float* out;
  std::uint32_t columns;
  float eps;
};

// x += y. `y_stride`: floats from row to row of y; 0 for a bias, which is the same for all rows.
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

// out = act(in); for gated activations out = act(in) * out.
struct ActivateArgs {
  const float* in;
  float* out;
  std::uint32_t columns;
};

// Row i of out = row rows[i] of in. If rows[i] is kNoRow, gather_rows leaves row i of `out` as it is. If `out` is `in`
// (compact_rows), the numbers in `rows` must ascend; each thread then moves one column, row after row.
struct GatherArgs {
  const std::uint32_t* rows;  // [n_rows]
  const float* in;
  float* out;
  std::uint32_t n_rows;
  std::uint32_t columns;
};

}  // namespace tessera::cuda
