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
  const float* a;      // as AdapterTensor::a
  const float* b;      // as AdapterTensor::b, of embeddings alone; nullptr otherwise
  double scale = 1.0;  // of the file and of the user
};

// Merges changes into a row of the model. `matrix` and `row` say which. `buffer` has room for 2 * values.size() numbers.
void merge_row(std::span<const RowChange> changes, std::uint64_t matrix, std::uint64_t outputs, std::uint64_t row, std::span<float> values,
               std::span<double> buffer);

}  // namespace tessera::detail::adapters
