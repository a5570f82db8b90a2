#include "adapters/merged_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"

namespace tessera::detail::adapters {

namespace {

double number_at(DType dtype, const std::vector<std::byte>& bytes, std::uint64_t index) noexcept {
  if (dtype == DType::f32) {
    float value = 0.0f;
    std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
  return dtype == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// Adds factors[r] * (row r) to `sum` for all rows r. Adds four rows in one pass over `sum`, so that `sum` is loaded and stored less often.
void add_rows(const double* factors, const float* rows, std::uint64_t n_rows, std::span<double> sum) noexcept {
  const std::uint64_t n = sum.size();
  double* out = sum.data();
  std::uint64_t r = 0;
  for (; r + 4 <= n_rows; r += 4) {
    const float *r0 = rows + r * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
    const double f0 = factors[r], f1 = factors[r + 1], f2 = factors[r + 2], f3 = factors[r + 3];
    for (std::uint64_t i = 0; i < n; ++i) out[i] += (f0 * r0[i] + f1 * r1[i]) + (f2 * r2[i] + f3 * r3[i]);
  }
  for (; r < n_rows; ++r) {
    for (std::uint64_t i = 0; i < n; ++i) out[i] += factors[r] * rows[r * n + i];
  }
}

// Adds row `row` of scale * B A to `sum`  [inputs], for matrix `matrix` of a tensor whose matrices have `outputs` rows each.
void add_change(const RowChange& change, std::uint64_t matrix, std::uint64_t outputs, std::uint64_t row, std::span<double> sum) {
  const AdapterTensor& tensor = *change.tensor;
  const std::uint64_t rank = tensor.rank, width = sum.size();
  if (tensor.is_embedding) {
    for (std::uint64_t i = 0; i < width; ++i) {
      double product = 0.0;
      for (std::uint64_t r = 0; r < rank; ++r) product += static_cast<double>(change.b[i * rank + r]) * change.a[row * rank + r];
      sum[i] += change.scale * product;
    }
    return;
  }
  double factors[kMaxAdapterRank];
  const std::uint64_t b_matrix = tensor.b_count == 1 ? 0 : matrix, a_matrix = tensor.a_count == 1 ? 0 : matrix;
  for (std::uint64_t r = 0; r < rank; ++r) factors[r] = change.scale * number_at(tensor.dtype, tensor.b, (b_matrix * outputs + row) * rank + r);
  add_rows(factors, change.a + a_matrix * rank * width, rank, sum);
}

}  // namespace

void merge_row(std::span<const RowChange> changes, std::uint64_t matrix, std::uint64_t outputs, std::uint64_t row, std::span<float> values,
               std::span<double> buffer) {
  const std::span<double> sum = buffer.first(values.size()), own = buffer.subspan(values.size(), values.size());
  std::copy(values.begin(), values.end(), sum.begin());
  for (const RowChange& change : changes) {
    add_change(change, matrix, outputs, row, sum);
    if (change.tensor->lengths.empty()) continue;
    std::copy(values.begin(), values.end(), own.begin());
    add_change(change, matrix, outputs, row, own);
    double squares = 0.0;
    for (const double value : own) squares += value * value;
    const double factor = squares > 0.0 ? change.tensor->lengths[matrix * outputs + row] / std::sqrt(squares) : 0.0;
    for (double& value : sum) value *= factor;
  }
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(sum[i]);
}

}  // namespace tessera::detail::adapters
