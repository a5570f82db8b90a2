// Family reference-f32, said again as plainly as can be: one value at a time, no vectors, no tiles. The kernels must
// equal it bit for bit (docs/reference/numerics.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/math.hpp"

namespace tessera::test {

// One chain over k ascending, from 0.
inline float reference_dot(const float* x, const float* w, std::size_t n) {
  float sum = 0.0f;
  for (std::size_t k = 0; k < n; ++k) {
    const float product = x[k] * w[k];
    sum = sum + product;
  }
  return sum;
}

// 16 partial sums (element mod 16), then pairs at distance 8, 4, 2, 1.
inline float reference_lane_sum(const std::vector<float>& terms) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) lanes[i % 16] += terms[i];
  const float eight[8] = {lanes[0] + lanes[8],  lanes[1] + lanes[9],  lanes[2] + lanes[10], lanes[3] + lanes[11],
                          lanes[4] + lanes[12], lanes[5] + lanes[13], lanes[6] + lanes[14], lanes[7] + lanes[15]};
  const float four[4] = {eight[0] + eight[4], eight[1] + eight[5], eight[2] + eight[6], eight[3] + eight[7]};
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// Attention of one query over keys [begin, end), position by position: `key(j)` and `value(j)` give rows as the cache
// holds them.
template <class Key, class Value>
std::vector<float> reference_attention(const float* q, std::size_t key_dim, std::size_t value_dim, float scale,
                                       std::uint64_t begin, std::uint64_t end, Key key, Value value, float softcap = 0.0f,
                                       const float* sink = nullptr) {
  std::vector<float> total(value_dim, 0.0f);
  float total_max = 0.0f, total_sum = 0.0f;
  bool first = true;
  for (std::uint64_t chunk = begin / 256 * 256; chunk < end; chunk += 256) {
    const std::uint64_t from = std::max(begin, chunk), to = std::min(end, chunk + 256);
    std::vector<float> scores;
    float maximum = -std::numeric_limits<float>::infinity();
    for (std::uint64_t j = from; j < to; ++j) {
      scores.push_back(reference_dot(q, key(j), key_dim) * scale);
      if (softcap != 0.0f) scores.back() = softcap * math::tanh(scores.back() / softcap);
      maximum = std::max(maximum, scores.back());
    }
    std::vector<float> weights(256, 0.0f);
    for (std::uint64_t j = from; j < to; ++j) weights[j - chunk] = math::exp(scores[j - from] - maximum);
    const float sum = reference_lane_sum(weights);
    std::vector<float> partial(value_dim, 0.0f);
    for (std::uint64_t j = from; j < to; ++j) {
      for (std::size_t d = 0; d < value_dim; ++d) partial[d] += weights[j - chunk] * value(j)[d];
    }
    if (first) {
      total = partial;
      total_max = maximum;
      total_sum = sum;
      first = false;
      continue;
    }
    const float merged = std::max(maximum, total_max);
    const float keep = math::exp(total_max - merged), take = math::exp(maximum - merged);
    for (std::size_t d = 0; d < value_dim; ++d) total[d] = total[d] * keep + partial[d] * take;
    total_sum = total_sum * keep + sum * take;
    total_max = merged;
  }
  if (sink != nullptr) {
    const float merged = std::max(*sink, total_max), keep = math::exp(total_max - merged);
    for (float& x : total) x *= keep;
    total_sum = total_sum * keep + math::exp(*sink - merged);
  }
  for (float& x : total) x /= total_sum;
  return total;
}

}  // namespace tessera::test
