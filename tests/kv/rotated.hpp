// The rotation of a head's numbers (docs/reference/numerics.md), by its definition.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace tessera::test {

// H x over as many neighbours as the largest power of two that divides the dimension, from 8 on: by its definition, each
// sum as the tree that docs/reference/numerics.md has. `out`: of queries and of weighted sums.
inline std::vector<float> rotated(std::vector<float> x, bool out) {
  std::size_t n = 1, log = 0;
  while (x.size() % (2 * n) == 0) n *= 2, ++log;
  if (n < 8) return x;
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    const std::vector<float> before = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = (i & bit) == 0 ? before[i] + before[i | bit] : before[i & ~bit] - before[i];
    }
  }
  for (float& value : x) value *= std::ldexp(1.0f, -static_cast<int>(out ? (log + 1) / 2 : log / 2));
  return x;
}

}  // namespace tessera::test
