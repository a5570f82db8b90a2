// Computes rows of merged matrices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/adapter_file.hpp"

namespace tessera::detail::adapters {

// One adapter's change of one tensor, with A as F32.
struct RowChange {
  const AdapterTensor* tensor;
  const float* a;      // AdapterTensor::a as F32
  const float* b;      // AdapterTensor::b as F32 if the tensor is the table of embeddings, otherwise nullptr
  double scale = 1.0;  // the file's scale times the user's scale
};

// Applies the changes to one row of a weight matrix: row `row` of matrix `matrix` of a tensor whose matrices have `outputs` rows each.
// `values`: the row; afterwards the merged row  [inputs]. `buffer`: scratch memory of 2 * values.size() numbers.
void merge_row(std::span<const RowChange> changes, std::uint64_t matrix, std::uint64_t outputs, std::uint64_t row, std::span<float> values,
               std::span<double> buffer);

}  // namespace tessera::detail::adapters
