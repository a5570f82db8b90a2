// The loops over whole vocabularies: plain arithmetic in steps of kLanes, which compilers vectorise. Every machine gives
// the same bits, because no sum's order depends on the vectors' width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "support/math_inline.hpp"

namespace tessera::sampling::loops {

inline constexpr std::size_t kLanes = 16;

// An integer that orders floats: the two zeros alike, and NaN outside of all others, so that no order is ever undefined.
[[nodiscard, gnu::always_inline]] inline std::int32_t rank(float x) noexcept {
  const auto bits = __builtin_bit_cast(std::int32_t, x + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// The highest rank of x[0, n).
[[nodiscard]] inline std::int32_t highest_rank(const float* x, std::size_t n) noexcept {
  std::array<std::int32_t, kLanes> highest;
  highest.fill(std::numeric_limits<std::int32_t>::min());
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::int32_t r = rank(x[i + lane]);
      highest[lane] = r > highest[lane] ? r : highest[lane];
    }
  }
  std::int32_t result = std::numeric_limits<std::int32_t>::min();
  for (const std::int32_t r : highest) result = r > result ? r : result;
  for (; i < n; ++i) result = rank(x[i]) > result ? rank(x[i]) : result;
  return result;
}

struct Range {
  float low, high;
};

// The lowest and the highest of x; NaN is neither.
[[nodiscard]] inline Range range(const float* x, std::size_t n) noexcept {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::array<float, kLanes> low, high;
  low.fill(kInfinity);
  high.fill(-kInfinity);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
    }
  }
  Range all{kInfinity, -kInfinity};
  for (const float value : low) all.low = value < all.low ? value : all.low;
  for (const float value : high) all.high = value > all.high ? value : all.high;
  for (; i < n; ++i) {
    all.low = x[i] < all.low ? x[i] : all.low;
    all.high = x[i] > all.high ? x[i] : all.high;
  }
  return all;
}

// Copies; says whether every value is above -inf, and so a number.
[[nodiscard]] inline bool copy_numbers(const float* from, float* to, std::size_t n) noexcept {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  std::array<std::uint32_t, kLanes> bad{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = from[i + lane];
      to[i + lane] = x;
      bad[lane] |= x > kLowest ? 0u : 1u;
    }
  }
  std::uint32_t any = 0;
  for (const std::uint32_t b : bad) any |= b;
  for (; i < n; ++i) {
    to[i] = from[i];
    any |= from[i] > kLowest ? 0u : 1u;
  }
  return any == 0;
}

inline void divide(float* x, std::size_t n, float shift, float divisor) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - shift) / divisor;
}

// Four running sums of x: sums[i % 4] += x[i], ascending.
inline void add(const float* x, std::size_t n, std::array<double, 4>& sums) noexcept {
  double a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a += static_cast<double>(x[i]);
    b += static_cast<double>(x[i + 1]);
    c += static_cast<double>(x[i + 2]);
    d += static_cast<double>(x[i + 3]);
  }
  sums = {a, b, c, d};
  for (std::size_t lane = 0; i < n; ++i, ++lane) sums[lane] += static_cast<double>(x[i]);
}

// weights[i] = exp(x[i] - top). In loops.cpp, for the vectors that the machine has.
void weigh(const float* x, std::size_t n, float top, float* weights) noexcept;

// Makes the weight 0 where the order (order.hpp) of x is below `least`, or is `least` and the token's below `last`; how many
// keep theirs.
[[nodiscard]] inline std::size_t drop_weights(const float* x, const std::int32_t* tokens, std::size_t n, std::uint32_t least, std::uint32_t last,
                         float* weights) noexcept {
  const auto lowest = static_cast<std::int32_t>(least ^ 0x80000000u);
  const auto highest_token = static_cast<std::int32_t>(~last);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t r = rank(x[i]);
    const bool kept = (r > lowest) | ((r == lowest) & (tokens[i] <= highest_token));
    weights[i] = math::inlined::select(kept, weights[i], 0.0f);
    count += kept ? 1u : 0u;
  }
  return count;
}

// The sum of x, in an order of its own.
[[nodiscard]] inline double total(const float* x, std::size_t n) noexcept {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += static_cast<double>(x[i + lane]);
  }
  double sum = 0.0;
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  for (const double s : sums) sum += s;
  return sum;
}

}  // namespace tessera::sampling::loops
