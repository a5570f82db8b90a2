// Arguments of the kernels that make an adapter's change to the products of a matrix (backend/low_rank.hpp): out = factor * (out + B t)
// with t = scale * A x, for some rows of a step.
//
// Numerics: the numbers of A and B are converted to f32 first. For an element of A x, lane l of a warp adds up inputs l, l + 32, ... by
// fused multiply-adds, from 0; then warp_sum() adds the lanes' sums. An element of B t is one chain of fused multiply-adds over the rank,
// ascending from 0.
#pragma once

#include <cstdint>

#include "backend/low_rank.hpp"

namespace tessera::cuda {

enum class LowRankNumber : std::uint32_t { f32, f16, bf16 };

// low_rank_down: t = scale * A x. A warp computes one element. grid: (rows, rank / kLowRankWarps, rounded up, matrices).
struct LowRankDownArgs {
  const std::byte* a;          // [a_count, rank, inputs]
  const float* x;              // [..][x_stride]: the inputs of all matrices, one after another
  const std::uint32_t* rows;   // [rows]: rows of x
  float* t;                    // [matrices, rows, rank]
  std::uint64_t inputs;
  std::uint32_t rank;
  std::uint32_t x_stride;
  float scale;
  LowRankNumber number;
  std::uint32_t shares_a;  // not 0: all matrices of the weight share one A
  std::uint32_t padding;
};
inline constexpr unsigned kLowRankThreads = 256;
inline constexpr unsigned kLowRankWarps = kLowRankThreads / 32;

// low_rank_tokens: t = scale * row `token` of A, for tables; 0 for rows without a token (kNoRow). grid.x: rows.
struct LowRankTokensArgs {
  const std::byte* a;           // [table rows, rank]
  const std::uint32_t* tokens;  // [rows of the step]
  const std::uint32_t* rows;    // [rows]
  float* t;                     // [rows, rank]
  std::uint32_t rank;
  float scale;
  LowRankNumber number;
  std::uint32_t padding;
};

// low_rank_up: out = factor * (out + B t). grid: (rows, outputs / kLowRankThreads, rounded up, matrices).
struct LowRankUpArgs {
  const std::byte* b;                              // [b_count, outputs, rank]
  const backend::LowRankValues::Length* lengths;   // [matrices, outputs]; nullptr: no factors
  const std::uint32_t* rows;
  const float* t;
  float* out;  // [..][out_stride]: the outputs of all matrices, one after another
  std::uint64_t outputs;
  double scale;
  std::uint32_t rank;
  std::uint32_t out_stride;
  LowRankNumber number;
  std::uint32_t shares_b;
};

}  // namespace tessera::cuda
