// Arguments of the kernels of recurrent layers. States lie in KV pages, in the layout of backend/recurrent_state.hpp. All sums have the
// order of the CPU's kernels (cpu/kernels/recurrent.cpp), so with the same inputs the bits are the same. Exception: the sum of squares by
// which q and k of a delta net are normed has another order: lane l of a warp adds up elements l, l + 32, ... by fused multiply-adds; then
// warp_sum() adds the lanes' sums.
#pragma once

#include <cstdint>

#include <tessera/extend/core/operation_kinds.hpp>

namespace tessera::cuda {

// Consecutive rows of one sequence.
struct StateRun {
  std::uint64_t before;  // address of the page with the state before the first row; 0: the state is zeros
  std::uint32_t first, count;
};

// The runs of a step, and where a layer's state lies in a page.
struct StateRows {
  const StateRun* runs;
  const std::uint64_t* after;  // [rows]: address of the page to which the row's state is written
  std::uint64_t offset;        // bytes from the page's start to the state
};

// convolve_rows: backend::Backend::convolve(), in place. grid: (runs, columns / kStateThreads, rounded up).
struct ConvolveArgs {
  StateRows states;
  const float* weight;  // [width][columns]
  const float* bias;    // [columns]; nullptr: none
  float* x;             // [rows, columns]
  std::uint32_t columns, width;
  std::uint32_t silu;  // not 0: SiLU of the result
  std::uint32_t padding;
};
inline constexpr unsigned kStateThreads = 128;

// prepare_delta: norms q and k of each group in place. Turns `steps` into decays and `rates` into betas, in place too. grid.x: rows.
// prepare_scan: computes steps and decays, as the comments of the members say. grid.x: rows.
struct PrepareStateArgs {
  float* qkv;              // [rows][qkv_stride]; unused by prepare_scan
  float* steps;            // [rows][steps_stride]: decays afterwards; prepare_scan: the steps
  float* rates;            // [rows][rates_stride]: betas; prepare_scan: the decays, which it writes without reading
  const float* rate;       // [heads]
  const float* step_bias;  // [heads]
  std::uint32_t heads, groups, keys;
  std::uint32_t qkv_stride, steps_stride, rates_stride;
};
inline constexpr unsigned kPrepareThreads = 128;

// delta_rule and scan_rows: compute the recurrences, after the preparation. grid: (runs, heads, values / kStateThreads, rounded up). A
// thread computes one value dimension of a head: its state has one number for each key dimension.
struct RecurrenceArgs {
  StateRows states;
  const float* x;       // [rows][x_stride]
  const float* decays;  // [rows][decays_stride]
  const float* rates;   // [rows][rates_stride]
  const float* skip;    // [heads]; used only by scan_rows
  float* out;           // [rows, heads, values]
  std::uint32_t x_stride, decays_stride, rates_stride;
  std::uint32_t heads, groups, keys, values;
  std::uint32_t first_key, first_query, first_value;  // columns of x
  StateGroups order;
  std::uint32_t padding;
};

}  // namespace tessera::cuda
