// How weights lie in memory. A format maps to one of two packed forms:
//   panels  F32, F16, BF16: 16 outputs side by side, K-major: element (n, k) at [n / 16][k][n % 16], so that the lanes
//           of a kernel are outputs. The last panel is padded with zeros.
//   rows    quantised formats: the file's blocks, row by row; a kernel decodes 16 rows of a stretch of K at a time.
// Either way the kernel sees f32 tiles [k][16].
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/backend/backend.hpp>

namespace tessera::backend {

struct Matrix {
  MatrixShape shape;
  const std::byte* data = nullptr;
};

struct Vector {
  const float* data = nullptr;
  std::uint64_t n = 0;
};

}  // namespace tessera::backend

namespace tessera::cpu {

inline constexpr std::size_t kPanel = 16;   // outputs of a tile
inline constexpr std::size_t kDepth = 256;  // k of a tile: a multiple of every format's block

inline constexpr std::size_t kTileFloats = kPanel * kDepth;

[[nodiscard]] bool is_panel_form(DType dtype) noexcept;
[[nodiscard]] std::uint64_t packed_bytes(const backend::MatrixShape& shape) noexcept;
[[nodiscard]] std::uint64_t row_bytes(const backend::MatrixShape& shape) noexcept;  // in the file's format

// Packs rows [first, first + count) given in the file's format.
void pack_rows(const backend::MatrixShape& shape, std::uint64_t first, std::uint64_t count, const std::byte* rows,
               std::byte* packed) noexcept;

// Outputs [16 * panel, +16), inputs [k0, k0 + depth) as f32 [depth][16]; k0 is a multiple of kDepth. Decodes into
// `scratch` (2 * kTileFloats) unless the tile lies in memory as it is needed. Outputs past the last are zero.
[[nodiscard]] const float* tile(const backend::Matrix& matrix, std::size_t panel, std::size_t k0, std::size_t depth,
                                float* scratch) noexcept;

// One row of the matrix as f32  [inputs].
void unpack_row(const backend::Matrix& matrix, std::uint64_t row, float* out) noexcept;

}  // namespace tessera::cpu
