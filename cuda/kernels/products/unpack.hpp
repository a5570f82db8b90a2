// Arguments of the kernels that unpack weights.
#pragma once

#include <cstdint>

#include "cuda/kernels/elementwise.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

inline constexpr unsigned kUnpackThreads = 256;

enum class UnpackStore : std::uint32_t { set, add };

// unpack_rows_<form>: reads rows of a table, for example the embeddings of tokens. Row i of `out` becomes scale * row indices[i] of the
// table, or is increased by it (`store`). Values are those that the format's decode() returns. grid.x: rows of out.
struct UnpackRowsArgs {
  DeviceMatrix table;
  const std::uint32_t* indices;  // [n], each below table.outputs, or kNoRow
  float* out;                    // [n][out_stride]
  float scale;                   // placed here, where it leaves no padding after it
  std::uint32_t out_stride;      // floats
  UnpackStore store;
};

// unpack_half_<form>: writes outputs [first, first + gridDim.x) of a quantised matrix as f16  [gridDim.x][inputs], so that cuBLASLt can
// multiply them. Values out of f16's range become its largest number. grid.y: inputs / kHalfTile, rounded up. (There is no such kernel for
// f32, f16 and bf16: cuBLASLt reads these rows where they are, stride[0] bytes apart.)
struct UnpackHalfArgs {
  DeviceMatrix weight;
  std::uint16_t* out;  // aligned to 16 bytes
  std::uint32_t first;
};
inline constexpr std::uint32_t kHalfTile = kUnpackThreads * 8;  // values of a block

}  // namespace tessera::cuda
