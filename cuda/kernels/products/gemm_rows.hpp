// Arguments of the kernels before and after cuBLASLt's products. The kernels before a product convert activations to 16-bit numbers. The
// kernel after a product scales the result, adds the bias, and stores it. A row's result depends on that row alone.
#pragma once

#include <cstdint>

namespace tessera::cuda {

inline constexpr unsigned kGemmRowThreads = 256;

// rows_to_half: converts rows to f16. So that no row overflows f16 or loses precision, each row is multiplied by a factor, a power of two
// that brings its largest magnitude into [2^14, 2^15). `scales` gets the inverse of the factor, by which finish_rows multiplies the result.
// Factor and inverse must be normal f32 numbers, so the factor is at most 2^126: the largest magnitude of rows below 2^-112 stays below
// 2^14. If a row has only zeros, or an infinity or NaN, its factor is 1. rows_to_bf16: converts rows to bf16, without a factor; `scales` is
// not used. grid.x: rows.
struct NarrowRowsArgs {
  const float* in;     // [rows][in_stride]
  std::uint16_t* out;  // [rows][out_stride]
  float* scales;       // [rows]
  std::uint32_t columns;
  std::uint32_t in_stride, out_stride;
};

// finish_rows: turns a result y of cuBLASLt into the product's result: out = y * scale (+ bias), or out += y * scale (+ bias), where
// `scale` is the row's number in `scales`. out may be y. grid.x: rows; grid.y: columns / kFinishTile, rounded up.
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
