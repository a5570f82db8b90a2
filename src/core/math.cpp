#include "core/math.hpp"

#include <bit>
#include <cstdint>

#include "core/math_inline.hpp"
#include "core/math_wide.hpp"

namespace tessera::math {

float exp(float x) noexcept { return inlined::exp(x); }
float tanh(float x) noexcept { return inlined::tanh(x); }
float erf(float x) noexcept { return inlined::erf(x); }

namespace {

using wide::kInfinity;
using wide::kLn2High;
using wide::kLn2Low;
using wide::kNaN;
using wide::kRound;
using wide::Pair;
using wide::fast_two_sum;
using wide::log_pair;
using wide::two_product;

struct Reduced {
  double high;
  double low;
  std::uint64_t quadrant;
};

// Subtracts from x the nearest multiple n pi/2, so that sin and cos need a polynomial only for |x| <= pi/4. Returns the rest as the sum
// high + low of two doubles, and n mod 4 as the quadrant. Valid for |x| <= 1e9. To keep the rest accurate, pi/2 is subtracted in parts of
// 33 bits: the product of a part with n is exact while n has at most 20 bits (|x| up to 1.6e6) (Cody and Waite, "Software Manual for the
// Elementary Functions", 1980).
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

// Return sin(x + low) and cos(x + low) for |x| <= pi/4: Taylor series of sin to x^17 and of cos to x^18. `low` is the small second part of
// reduce()'s rest; only its first power is used.
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

double exp(double x) noexcept { return wide::exp(x); }
double log(double x) noexcept { return wide::log(x); }

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
