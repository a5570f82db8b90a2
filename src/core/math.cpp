#include "core/math.hpp"

#include <bit>
#include <cstdint>
#include <limits>

#include "core/math_inline.hpp"

namespace tessera::math {

float exp(float x) noexcept { return inlined::exp(x); }
float tanh(float x) noexcept { return inlined::tanh(x); }
float erf(float x) noexcept { return inlined::erf(x); }

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kRound = 0x1.8p52;                 // adding it rounds to an integer
constexpr double kLn2High = 0x1.62e42fee00000p-1;   // 33 bits, so that its product with any exponent is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

double bits_to_double(std::uint64_t bits) noexcept { return std::bit_cast<double>(bits); }
double power_of_two(std::int64_t n) noexcept { return bits_to_double(static_cast<std::uint64_t>(n + 1023) << 52); }

// A number in double-double precision: the sum high + low, which is not rounded to one double. |low| is at most half an ulp of high.
struct Pair {
  double high;
  double low;
};

Pair fast_two_sum(double a, double b) noexcept {  // |a| >= |b|, or a = 0
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// Returns a * b exactly, without FMA, by Veltkamp's split and Dekker's product (T. J. Dekker, "A floating-point
// technique for extending the available precision", 1971).
Pair two_product(double a, double b) noexcept {
  constexpr double kSplit = 0x1p27 + 1.0;
  const double a_big = a * kSplit, b_big = b * kSplit;
  const double a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// x = 2^exponent * mantissa, mantissa in [sqrt(1/2), sqrt(2)). x positive and finite.
struct Split {
  double mantissa;
  double exponent;
};

Split split(double x) noexcept {
  std::int64_t exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = bits_to_double((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa >= 0x1.6a09e667f3bcdp+0) {
    mantissa *= 0.5;
    ++exponent;
  }
  return {mantissa, static_cast<double>(exponent)};
}

// Returns 2 (atanh(s) - s) / s as a series in z = s^2 <= 0.0295: 2 z / 3 + 2 z^2 / 5 + ...
double atanh_tail(double z) noexcept {
  double r = 2.0 / 23.0;
  for (double k = 21.0; k >= 3.0; k -= 2.0) r = r * z + 2.0 / k;
  return r * z;
}

// Returns ln x with about 60 correct bits.
Pair log_pair(double x) noexcept {
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

struct Reduced {
  double high;
  double low;
  std::uint64_t quadrant;
};

// Returns x - n pi/2 as a pair, where n pi/2 is the multiple of pi/2 nearest to x; |x| <= 1e9. pi/2 is split into parts of 33 bits. Their
// products with n are exact while n has up to 20 bits (|x| up to 1.6e6) (Cody and Waite, "Software Manual for the Elementary Functions",
// 1980).
Reduced reduce(double x) noexcept {
  const double shifted = x * 0x1.45f306dc9c883p-1 + kRound;
  const double n = shifted - kRound;
  const double a = x - n * 0x1.921fb54400000p+0;  // exact: the difference is of about n's last place
  const double b = n * 0x1.0b4611a600000p-34;
  const double c = a - b;
  const double c_low = (a - c) - b;
  const Pair sum = fast_two_sum(c, c_low - n * 0x1.3198a2e037073p-69);
  return {sum.high, sum.low, std::bit_cast<std::uint64_t>(shifted) & 3u};
}

// Return sin and cos of x + low, |x| <= pi/4, by Taylor series to x^17 and x^18; `low` enters to first order.
double sin_kernel(double x, double low) noexcept {
  const double z = x * x;
  double p = 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return x + (p * z * x + low * (1.0 - 0.5 * z));
}

double cos_kernel(double x, double low) noexcept {
  const double z = x * x;
  double p = -1.0 / 6402373705728000.0;
  p = p * z + 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  const double half = 0.5 * z;
  const double one = 1.0 - half;
  return one + (((1.0 - one) - half) + (p * z * z - x * low));
}

}  // namespace

double exp(double x) noexcept {
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

double log(double x) noexcept {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  const Pair value = log_pair(x);
  return value.high + value.low;
}

double sin(double x) noexcept {
  if (!(x >= -1e9 && x <= 1e9)) return kNaN;
  const Reduced r = reduce(x);
  const double value = (r.quadrant & 1u) != 0 ? cos_kernel(r.high, r.low) : sin_kernel(r.high, r.low);
  return (r.quadrant & 2u) != 0 ? -value : value;
}

double cos(double x) noexcept {
  if (!(x >= -1e9 && x <= 1e9)) return kNaN;
  const Reduced r = reduce(x);
  const double value = (r.quadrant & 1u) != 0 ? sin_kernel(r.high, r.low) : cos_kernel(r.high, r.low);
  return ((r.quadrant + 1u) & 2u) != 0 ? -value : value;
}

double pow(double x, double y) noexcept {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return kNaN;
  const double size = x < 0.0 ? -x : x;
  const double reach = y < 0.0 ? -y : y;
  const bool integer = reach >= 0x1p52 || (reach + 0x1p52) - 0x1p52 == reach;
  const bool odd = integer && reach < 0x1p53 && (static_cast<std::uint64_t>(reach) & 1u) != 0;
  const bool negative = std::bit_cast<std::uint64_t>(x) >> 63 != 0 && odd;
  double result;
  if (size == 0.0 || size == kInfinity) {
    result = (size == 0.0) == (y < 0.0) ? kInfinity : 0.0;
  } else if (x < 0.0 && !integer) {
    return kNaN;
  } else if (reach > 0x1p70) {  // y is infinite, or so large that every |x| but 1 gives 0 or infinity
    result = size == 1.0 ? 1.0 : (size > 1.0) == (y > 0.0) ? kInfinity : 0.0;
  } else {
    const Pair logarithm = log_pair(size);
    const Pair product = two_product(y, logarithm.high);
    const double low = product.low + y * logarithm.low;
    const double value = math::exp(product.high);
    result = value == kInfinity || value == 0.0 ? value : value + value * low;
  }
  return negative ? -result : result;
}

}  // namespace tessera::math
