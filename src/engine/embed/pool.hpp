// Computes a text's vector from the vectors of its rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace tessera::detail {

// Adds to `mean` the mean of `rows`  [n, mean.size()], times `weight`.
inline void add_mean(std::span<const float> rows, double weight, std::span<double> mean) noexcept {
  const std::size_t width = mean.size(), n = rows.size() / width;
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0.0;
    for (std::size_t row = 0; row < n; ++row) sum += double{rows[row * width + i]};
    mean[i] += sum / static_cast<double>(n) * weight;
  }
}

// Scales a vector to length 1, unless it is zero. Sums are computed in double and in ascending order, so that the bits are the same on
// every machine.
inline void normalise(std::span<float> vector) noexcept {
  double squares = 0.0;
  for (const float x : vector) squares += double{x} * double{x};
  if (!(squares > 0.0)) return;
  const double scale = 1.0 / std::sqrt(squares);
  for (float& x : vector) x = static_cast<float>(double{x} * scale);
}

}  // namespace tessera::detail
