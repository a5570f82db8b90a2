// Recurrent layers, said as plainly as can be: one sequence, one row after another, one value at a time. The kernels must
// equal it bit for bit (docs/reference/numerics.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/math.hpp"
#include "cpu/reference.hpp"

namespace tessera::test::reference {

// Four chains, term mod 4, joined as 2 + 2, 1 + 1.
template <class Term>
float chained(std::size_t n, Term term) {
  float sum[4] = {};
  for (std::size_t i = 0; i < n; ++i) sum[i % 4] = term(i, sum[i % 4]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + math::exp(-x)); }
inline float softplus(float x) {
  const double wide = x;
  return static_cast<float>((wide > 0 ? wide : 0) + math::log(1 + math::exp(-std::fabs(wide))));
}

inline void l2_norm(const float* x, float scale, std::size_t n, float* out) {
  std::vector<float> squares(n);
  for (std::size_t i = 0; i < n; ++i) squares[i] = x[i] * x[i];
  const float by = 1.0f / std::sqrt(reference_lane_sum(squares) + 1e-6f);
  for (std::size_t i = 0; i < n; ++i) out[i] = (x[i] * by) * scale;
}

// A convolution: its columns' last inputs, oldest first.
struct Convolved {
  std::size_t width, columns;
  std::vector<float> weight;  // [width][columns]
  std::vector<float> bias;    // [columns], or none
  bool silu;
  std::vector<float> seen = std::vector<float>((width - 1) * columns);

  void row(float* x) {
    std::vector<float> inputs = seen;
    inputs.insert(inputs.end(), x, x + columns);
    for (std::size_t c = 0; c < columns; ++c) {
      float sum = bias.empty() ? 0.0f : bias[c];
      for (std::size_t i = 0; i < width; ++i) {
        const float product = weight[i * columns + c] * inputs[i * columns + c];
        sum = sum + product;
      }
      x[c] = silu ? sum / (1.0f + math::exp(-sum)) : sum;
    }
    seen.assign(inputs.begin() + static_cast<std::ptrdiff_t>(columns), inputs.end());
  }
};

// One head's state [keys][values].
struct Head {
  std::size_t keys, values;
  std::vector<float> state = std::vector<float>(keys * values);

  void delta_rule(const float* q, const float* k, const float* v, float decay, float beta, float* out) {
    for (std::size_t j = 0; j < values; ++j) {
      const float recalled = chained(keys, [&](std::size_t i, float sum) { return std::fma(k[i], state[i * values + j], sum); });
      const float wrong = v[j] - decay * recalled;
      out[j] = add_and_ask(q, k, j, decay, beta * wrong);
    }
  }

  void scan(const float* c, const float* b, const float* x, float decay, float step, float skip, float* out) {
    for (std::size_t j = 0; j < values; ++j) {
      const float seen = add_and_ask(c, b, j, decay, step * x[j]);
      const float skipped = skip * x[j];
      out[j] = seen + skipped;
    }
  }

 private:
  float add_and_ask(const float* query, const float* key, std::size_t j, float decay, float added) {
    return chained(keys, [&](std::size_t i, float sum) {
      const float product = key[i] * added;
      float& s = state[i * values + j];
      s = std::fma(decay, s, product);
      return std::fma(query[i], s, sum);
    });
  }
};

}  // namespace tessera::test::reference
