// The exponential and the logarithm of core/math.hpp in double, as constexpr functions in a header, so that CUDA kernels can call them.
// Include this only in files compiled with -ffp-contract=off (all of ours).
#pragma once

#include <cstdint>

namespace tessera::math::wide {

constexpr double kInfinity = __builtin_inf();
constexpr double kNaN = __builtin_nan("");
constexpr double kRound = 0x1.8p52;                 // adding it rounds to an integer
constexpr double kLn2High = 0x1.62e42fee00000p-1;   // 33 bits, so that its product with any exponent is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

[[nodiscard]] static constexpr double bits_to_double(std::uint64_t bits) noexcept { return __builtin_bit_cast(double, bits); }
[[nodiscard]] static constexpr double power_of_two(std::int64_t n) noexcept { return bits_to_double(static_cast<std::uint64_t>(n + 1023) << 52); }

// A number with the precision of two doubles: the sum high + low. |low| is at most half an ulp of high.
struct Pair {
  double high;
  double low;
};

[[nodiscard]] static constexpr Pair fast_two_sum(double a, double b) noexcept {  // |a| >= |b|, or a = 0
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// Returns a * b exactly, as the sum of two doubles. Does not use FMA, which not every CPU has: Veltkamp's split and Dekker's product (T. J.
// Dekker, "A floating-point technique for extending the available precision", 1971).
[[nodiscard]] static constexpr Pair two_product(double a, double b) noexcept {
  constexpr double kSplit = 0x1p27 + 1.0;
  const double a_big = a * kSplit, b_big = b * kSplit;
  const double a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// The parts of a number x that is positive and finite: x = 2^exponent * mantissa, with mantissa in [sqrt(1/2), sqrt(2)).
struct Split {
  double mantissa;
  double exponent;
};

[[nodiscard]] static constexpr Split split(double x) noexcept {
  std::int64_t exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, x);
  exponent += static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = bits_to_double((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa >= 0x1.6a09e667f3bcdp+0) {
    mantissa *= 0.5;
    ++exponent;
  }
  return {mantissa, static_cast<double>(exponent)};
}

// Returns 2 (atanh(s) - s) / s, for log_pair(), as a series in z = s^2 <= 0.0295: 2 z / 3 + 2 z^2 / 5 + ...
[[nodiscard]] static constexpr double atanh_tail(double z) noexcept {
  double r = 2.0 / 23.0;
  for (double k = 21.0; k >= 3.0; k -= 2.0) r = r * z + 2.0 / k;
  return r * z;
}

// Returns ln x with about 60 correct bits (more than a double has, so that pow() can multiply it). x is positive and finite.
[[nodiscard]] static constexpr Pair log_pair(double x) noexcept {
  const Split parts = split(x);
  const double f = parts.mantissa - 1.0;
  const Pair divisor = fast_two_sum(2.0, f);
  const double s = f / divisor.high;
  const Pair back = two_product(s, divisor.high);
  const double s_low = (((f - back.high) - back.low) - s * divisor.low) / divisor.high;
  const Pair lead = fast_two_sum(parts.exponent * kLn2High, 2.0 * s);
  const double rest = s * atanh_tail(s * s) + 2.0 * s_low + parts.exponent * kLn2Low + lead.low;
  return fast_two_sum(lead.high, rest);
}

[[nodiscard]] static constexpr double exp(double x) noexcept {
  if (!(x > -708.0)) return x != x ? x : 0.0;
  if (x > 709.79) return kInfinity;
  const double shifted = x * 0x1.71547652b82fep+0 + kRound;
  const double n = shifted - kRound;
  const double high = x - n * kLn2High;
  const double low = n * kLn2Low;
  const double r = high - low;
  const double r_low = (high - r) - low;
  double p = 1.0 / 6227020800.0;  // Taylor to r^13, |r| <= ln 2 / 2
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  const double result = 1.0 + (r + (p * (r * r) + r_low));
  const auto exponent = static_cast<std::int64_t>(n);
  const std::int64_t half = exponent / 2;
  return result * power_of_two(half) * power_of_two(exponent - half);
}

[[nodiscard]] static constexpr double log(double x) noexcept {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  const Pair value = log_pair(x);
  return value.high + value.low;
}

// Returns ln(1 + e^x), computed in double and rounded once.
[[nodiscard]] static constexpr float softplus(float x) noexcept {
  const double value = x, size = value < 0.0 ? -value : value;
  return static_cast<float>((value > 0.0 ? value : 0.0) + log(1.0 + exp(-size)));
}

}  // namespace tessera::math::wide
