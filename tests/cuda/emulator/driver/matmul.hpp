// d = alpha a b + beta c in f32, as cuBLASLt describes matrices.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace tessera::emulator {

struct MatrixView {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t leading = 0;  // elements from one column (of row-major matrices: one row) to the next
  bool row_major = false;
  std::uint64_t batches = 1;
  std::uint64_t batch_stride = 0;  // elements

  MatrixView transposed() const {
    MatrixView view = *this;
    view.rows = columns;
    view.columns = rows;
    view.row_major = !row_major;
    return view;
  }
  bool is_valid() const { return leading >= (row_major ? columns : rows); }
  std::size_t element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
  // From the first element to behind the last.
  std::size_t extent_bytes() const {
    const std::uint64_t lines = row_major ? rows : columns;
    const std::uint64_t length = row_major ? columns : rows;
    return ((batches - 1) * batch_stride + (lines - 1) * leading + length) * element_bytes();
  }
  std::size_t index(std::uint64_t batch, std::uint64_t row, std::uint64_t column) const {
    return batch * batch_stride + (row_major ? row * leading + column : column * leading + row);
  }
};

struct Matmul {
  MatrixView a;     // [m, k], after its transpose
  MatrixView b;     // [k, n]
  MatrixView c, d;  // [m, n]
  float alpha = 1.0f;
  float beta = 0.0f;
};

// The order of its sums depends on m and n, as cuBLAS's does, which picks another kernel for another shape: what needs
// results that do not depend on the batch must not use it.
void multiply(const Matmul& work, const void* a, const void* b, const void* c, void* d);

}  // namespace tessera::emulator
