// Loops over the logits of a whole vocabulary: plain arithmetic on kLanes numbers at a time, which compilers turn into vector instructions.
// Every machine computes the same bits, because the order of additions in each sum does not depend on the width of the machine's vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/math_inline.hpp"

namespace tessera::sampling::loops {

inline constexpr std::size_t kLanes = 16;

// Returns an integer with which floats are compared: a higher float has a higher integer. -0 and 0 have the same integer. Each NaN is
// either below or above all numbers, so that NaNs can be sorted too.
[[nodiscard, gnu::always_inline]] inline std::int32_t rank(float x) noexcept {
  const auto bits = __builtin_bit_cast(std::int32_t, x + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// Returns the highest rank of x[0, n).
[[nodiscard, gnu::always_inline]] inline std::int32_t highest_rank(const float* x, std::size_t n) noexcept {
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

// Returns the lowest and the highest of x, without NaNs.
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

// Copies n values. Returns false if any of them is -inf or NaN.
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

// Four running sums: x[i] is added to s[i % 4], in ascending order of i.
class FourSums {
 public:
  [[gnu::always_inline]] void add(const float* x, std::size_t n) noexcept {  // n: a multiple of 4, except in the last call
    double a = sums_[0], b = sums_[1], c = sums_[2], d = sums_[3];
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      a += static_cast<double>(x[i]);
      b += static_cast<double>(x[i + 1]);
      c += static_cast<double>(x[i + 2]);
      d += static_cast<double>(x[i + 3]);
    }
    sums_ = {a, b, c, d};
    for (; i < n; ++i) sums_[i % 4] += static_cast<double>(x[i]);
  }
  [[nodiscard]] double total() const noexcept { return (sums_[0] + sums_[1]) + (sums_[2] + sums_[3]); }

 private:
  std::array<double, 4> sums_{};
};

// loops.cpp compiles the functions below for several vector widths, and calls the version for the machine.

// Returns the first index of the highest rank; n > 0.
[[nodiscard]] std::size_t first_highest(const float* x, std::size_t n) noexcept;

// Sets x[i] = (x[i] - shift) / divisor.
void divide(float* x, std::size_t n, float shift, float divisor) noexcept;

// Returns the sum of x by FourSums.
[[nodiscard]] double sum(const float* x, std::size_t n) noexcept;

// Sets weights[i] = exp(x[i] - top), and returns the sum of the weights by FourSums.
double weigh(const float* x, std::size_t n, float top, float* weights) noexcept;

// Returns the sum of x, added in another order than by sum(): faster, with other rounding errors.
[[nodiscard]] double total(const float* x, std::size_t n) noexcept;

// Removes the candidates below a cut (for top-p) by setting their weights to 0. The cut is a key of order.hpp in two halves: `least` for
// the logit, `last` for the token. A candidate is below the cut if the order of its logit is below `least`, or equals `least` while the
// order of its token is below `last`. Returns how many candidates stay.
[[nodiscard]] std::size_t drop_weights(const float* x, const std::int32_t* tokens, std::size_t n, std::uint32_t least, std::uint32_t last,
                                       float* weights) noexcept;

struct Split {
  double above = 0.0;     // sum of the weights of all x >= high
  std::size_t count = 0;  // number of x in [low, high)
};
// Computes a Split, and lists the indices of all x in [low, high), ascending. `list` must have room for n.
[[nodiscard]] Split split(const float* x, const float* weights, std::size_t n, float low, float high, std::uint64_t* list) noexcept;

}  // namespace tessera::sampling::loops
