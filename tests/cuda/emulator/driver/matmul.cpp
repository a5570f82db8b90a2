#include "matmul.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/float16.hpp"

namespace tessera::emulator {
namespace {

float load(cudaDataType type, const void* from, std::size_t index) {
  if (type == CUDA_R_32F) {
    float value;
    std::memcpy(&value, static_cast<const unsigned char*>(from) + index * 4, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, static_cast<const unsigned char*>(from) + index * 2, 2);
  return type == CUDA_R_16F ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// [rows, columns] in order
std::vector<float> gather(const MatrixView& view, const void* from, std::uint64_t batch) {
  std::vector<float> values(view.rows * view.columns);
  for (std::uint64_t row = 0; row < view.rows; ++row) {
    for (std::uint64_t column = 0; column < view.columns; ++column) {
      values[row * view.columns + column] = load(view.type, from, view.index(batch, row, column));
    }
  }
  return values;
}

}  // namespace

void multiply(const Matmul& work, const void* a, const void* b, const void* c, void* d) {
  const std::uint64_t m = work.d.rows, n = work.d.columns, k = work.a.columns;
  const std::uint64_t block = std::uint64_t{8} << (std::bit_width(m) + 2 * std::bit_width(n)) % 5;
  for (std::uint64_t batch = 0; batch < work.d.batches; ++batch) {
    const std::vector<float> rows = gather(work.a, a, batch);
    const std::vector<float> columns = gather(work.b.transposed(), b, batch);
    for (std::uint64_t i = 0; i < m; ++i) {
      for (std::uint64_t j = 0; j < n; ++j) {
        float sum = 0.0f;
        for (std::uint64_t begin = 0; begin < k; begin += block) {
          float part = 0.0f;
          for (std::uint64_t l = begin; l < std::min(begin + block, k); ++l) {
            part = __builtin_fmaf(rows[i * k + l], columns[j * k + l], part);
          }
          sum += part;
        }
        float value = work.alpha * sum;
        if (work.beta != 0.0f) value += work.beta * load(work.c.type, c, work.c.index(batch, i, j));
        std::memcpy(static_cast<unsigned char*>(d) + work.d.index(batch, i, j) * 4, &value, 4);
      }
    }
  }
}

}  // namespace tessera::emulator
