// A packed matrix (packed_layout.hpp): packing the file's rows, and reading values back in plain code.
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
  InputRounding rounding = {};     // rounding of the rows that the matrix multiplies, except in head_linear()
  const float* factors = nullptr;  // [shape.count]: for each matrix, a factor of the outputs of its products; nullptr: all are 1

  [[nodiscard]] float factor(std::size_t matrix = 0) const noexcept { return factors != nullptr ? factors[matrix] : 1.0f; }
};

struct Vector {
  const float* data = nullptr;
  std::uint64_t n = 0;
};

}  // namespace tessera::backend

namespace tessera::cpu {

[[nodiscard]] std::uint64_t panels_of(const backend::MatrixShape& shape) noexcept;  // panels of one matrix
[[nodiscard]] std::uint64_t packed_bytes(const backend::MatrixShape& shape) noexcept;
[[nodiscard]] std::uint64_t row_bytes(const backend::MatrixShape& shape) noexcept;  // bytes of a row in the file's format

// Packs one panel from its rows in the file's format: `count` is panel_outputs(), or less at the matrix's end.
void pack_panel(const backend::MatrixShape& shape, const std::byte* rows, std::size_t count, std::byte* packed) noexcept;

// Decodes one row of the matrix to f32  [inputs].
void unpack_row(const backend::Matrix& matrix, std::uint64_t row, float* out) noexcept;

// Decodes a tile of a panel to the same f32 values as unpack_row(). `out`: [block_values][outputs], the sizes in form_layout(form).
void decode_tile(PackedForm form, const std::byte* tile, float* out) noexcept;

}  // namespace tessera::cpu
