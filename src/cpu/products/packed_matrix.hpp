// A matrix as kernels hold it (packed_layout.hpp): made from the file's rows, and read back plainly, value by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.hpp"
#include "cpu/products/packed_layout.hpp"

namespace tessera::backend {

struct Matrix {
  MatrixShape shape;
  formats::PackedForm form = formats::PackedForm::f32;
  const std::byte* data = nullptr;
  const float* factors = nullptr;  // of each matrix's products, or none  [shape.count]

  [[nodiscard]] float factor(std::size_t matrix = 0) const noexcept { return factors != nullptr ? factors[matrix] : 1.0f; }
};

struct Vector {
  const float* data = nullptr;
  std::uint64_t n = 0;
};

}  // namespace tessera::backend

namespace tessera::cpu {

[[nodiscard]] std::uint64_t panels_of(const backend::MatrixShape& shape) noexcept;  // of one matrix
[[nodiscard]] std::uint64_t packed_bytes(const backend::MatrixShape& shape) noexcept;
[[nodiscard]] std::uint64_t row_bytes(const backend::MatrixShape& shape) noexcept;  // in the file's format

// One panel from its rows in the file's format: panel_outputs(), or fewer at the matrix's end.
void pack_panel(const backend::MatrixShape& shape, const std::byte* rows, std::size_t count, std::byte* packed) noexcept;

// One row of the matrix as f32  [inputs].
void unpack_row(const backend::Matrix& matrix, std::uint64_t row, float* out) noexcept;

// A tile of a panel as f32  [block_values][outputs] of form_layout(form): the format's own decoding rule.
void decode_tile(PackedForm form, const std::byte* tile, float* out) noexcept;

}  // namespace tessera::cpu
