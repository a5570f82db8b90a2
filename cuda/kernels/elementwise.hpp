// Arguments of the kernels that are neither products nor attention. Activations are [rows, columns] of f32, row-major. Each block computes
// one row (grid.x), and its result depends only on that row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

inline constexpr unsigned kRowThreads = 256;
inline constexpr std::uint32_t kNoRow =
    0xffffffffu;  // as an index: the kernel does not write this row of `out`

// Norms each row: out = norm(in) * weight (+ bias). `out` may be `in`. Order of the sum over a row: each of 256 threads adds up every 256th
// element, ascending (squares by fused multiply-adds); then each warp adds the sums of its 32 lanes (warp_sum()); then the sums of the
// eight warps are added, ascending. rms_norm can norm equal groups of a row's columns separately: then `columns` is the size of a group,
// grid.y the number of groups, and `weight` has a number for each column of the whole row.
struct NormArgs {
  const float* in;
  const float* weight;  // [columns]
  const float* bias;    // [columns], or nullptr
  float* out;
  std::uint32_t columns;
  float eps;
};

// Three operations on x and y: add_rows computes x += y; multiply_rows computes x *= y; multiply_by multiplies all of x by the one number
// *y. `y_stride`: floats from one row of y to the next; 0 if y is a bias, which is the same for all rows.
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

// x = cap * tanh(x / cap).
struct SoftcapArgs {
  float* x;
  std::uint32_t columns;
  float cap;
};

// x *= 1 + rate * ln(1 + floor(position / length)), each row by its position.
struct PositionScaleArgs {
  float* x;
  const std::uint64_t* positions;  // [rows]
  std::uint64_t length;
  double rate;
  std::uint32_t columns;
  std::uint32_t padding;
};

// x *= sigmoid(gate), with one gate for each row.
struct WeighArgs {
  const float* gates;  // [rows][gate_stride], of which the first column is used
  float* x;
  std::uint32_t columns;
  std::uint32_t gate_stride;
};

// out = columns [first, first + columns) of in.
struct TakeColumnsArgs {
  const float* in;  // [rows][in_stride]
  float* out;       // [rows][columns]
  std::uint32_t columns;
  std::uint32_t first, in_stride;
  std::uint32_t padding;
};

// out = act(in); for gated activations out = act(in) * out, where clamped_swiglu also changes `out` (ActivationKind).
struct ActivateArgs {
  const float* in;
  float* out;
  std::uint32_t columns;
};

// Picks rows: row i of `out` = row rows[i] of `in`. gather_rows: if rows[i] is kNoRow, row i of `out` stays as it is. compact_rows: `out`
// is `in`, so the numbers in `rows` must ascend; each thread moves one column, row after row.
struct GatherArgs {
  const std::uint32_t* rows;  // [n_rows]
  const float* in;
  float* out;
  std::uint32_t n_rows;
  std::uint32_t columns;
};

}  // namespace tessera::cuda
