// Arguments of the kernels around cuBLAS's products: activations as 16-bit numbers, and what a linear layer does with
// the result. What is made of a row follows from that row alone.
#pragma once

#include <cstdint>

namespace tessera::cuda {

inline constexpr unsigned kGemmRowThreads = 256;

// rows_to_half: each row times a power of two that brings its largest size into [2^14, 2^15), and into scales the
// inverse of that. Both are normal f32 numbers: rows below 2^-112 come no nearer than a factor of 2^126. In rows of
// zeros, and in those that hold infinity or NaN, the factor is 1. rows_to_bf16: no factor, scales unused. grid.x: rows.
struct NarrowRowsArgs {
  const float* in;     // [rows][in_stride]
  std::uint16_t* out;  // [rows][out_stride]
  float* scales;       // [rows]
  std::uint32_t columns;
  std::uint32_t in_stride, out_stride;
};

// finish_rows: out = y * scale (+ bias), or that added to out. out may be y. grid.x: rows; grid.y: columns /
// kFinishTile, rounded up.
enum class FinishStore : std::uint32_t { set, add };
struct FinishRowsArgs {
  const float* y;       // [rows][y_stride]
  const float* scales;  // [rows], or nullptr
  const float* bias;    // [columns], or nullptr
  float* out;           // [rows][out_stride]
  std::uint32_t columns;
  std::uint32_t y_stride, out_stride;
  FinishStore store;
};
inline constexpr std::uint32_t kFinishTile = kGemmRowThreads * 4;

}  // namespace tessera::cuda
