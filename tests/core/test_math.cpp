// The errors that core/math.hpp states, against the C library in wider types; special values; and golden bits.
#include "core/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "core/math_inline.hpp"

namespace test_math {

namespace math = tessera::math;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kInfD = std::numeric_limits<double>::infinity();

// |got - want| in units of the last place of want, which is given in a wider type.
template <class T, class Wide>
double ulps(T got, Wide want) {
  const T rounded = static_cast<T>(want);
  int exponent = 0;
  (void)std::frexp(rounded, &exponent);
  using Limits = std::numeric_limits<T>;
  const Wide unit = std::ldexp(Wide{1}, std::max(exponent, Limits::min_exponent) - Limits::digits);
  return static_cast<double>(std::abs(static_cast<Wide>(got) - want) / unit);
}

template <class Ours, class Theirs>
double worst_f32(float from, float to, Ours ours, Theirs theirs) {
  double worst = 0;
  const int n = 2'000'000;
  for (int i = 0; i <= n; ++i) {
    const float x = from + (to - from) * (static_cast<float>(i) / static_cast<float>(n));
    worst = std::max(worst, ulps(ours(x), theirs(static_cast<double>(x))));
  }
  return worst;
}

// The same on floats of every magnitude.
template <class Ours, class Theirs>
double worst_f32_log(float from, float to, Ours ours, Theirs theirs) {
  double worst = 0;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(from); bits < std::bit_cast<std::uint32_t>(to); bits += 997) {
    const float x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(ours(x), theirs(static_cast<double>(x))));
    worst = std::max(worst, ulps(ours(-x), theirs(-static_cast<double>(x))));
  }
  return worst;
}

template <class Ours, class Theirs>
double worst_f64(double from, double to, Ours ours, Theirs theirs) {
  std::mt19937_64 random(7);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const double x = from + (to - from) * u;
    worst = std::max(worst, ulps(ours(x), theirs(static_cast<long double>(x))));
  }
  return worst;
}

}  // namespace

TEST_CASE("f32 exp, tanh and erf are within the stated error") {
  const auto exp = [](float x) { return math::exp(x); };
  const auto tanh = [](float x) { return math::tanh(x); };
  const auto erf = [](float x) { return math::erf(x); };
  const auto exp64 = [](double x) { return std::exp(x); };
  const auto tanh64 = [](double x) { return std::tanh(x); };
  const auto erf64 = [](double x) { return std::erf(x); };
  const double e1 = worst_f32(-87.25f, 88.72f, exp, exp64), e2 = worst_f32_log(1e-30f, 87.0f, exp, exp64);
  const double t1 = worst_f32(-10.0f, 10.0f, tanh, tanh64), t2 = worst_f32_log(1e-30f, 100.0f, tanh, tanh64);
  const double r1 = worst_f32(-5.0f, 5.0f, erf, erf64), r2 = worst_f32_log(1e-30f, 100.0f, erf, erf64);
  CAPTURE(e1, e2, t1, t2, r1, r2);
  CHECK(std::max(e1, e2) <= 1.0);
  CHECK(std::max(t1, t2) <= 2.0);
  CHECK(std::max(r1, r2) <= 2.0);
}

TEST_CASE("f32 special values") {
  CHECK(math::exp(0.0f) == 1.0f);
  CHECK(math::exp(-kInf) == 0.0f);
  CHECK(math::exp(-87.26f) == 0.0f);
  CHECK(math::exp(-1e30f) == 0.0f);
  CHECK(math::exp(-87.25f) > 0.0f);
  CHECK(math::exp(88.73f) == kInf);
  CHECK(math::exp(88.72f) < kInf);
  CHECK(math::exp(kInf) == kInf);
  CHECK(math::tanh(kInf) == 1.0f);
  CHECK(math::tanh(-kInf) == -1.0f);
  CHECK(math::erf(kInf) == 1.0f);
  CHECK(math::erf(-kInf) == -1.0f);
  CHECK(std::signbit(math::tanh(-0.0f)));
  CHECK(std::signbit(math::erf(-0.0f)));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(math::exp(nan)));
  CHECK(std::isnan(math::exp(-nan)));
  CHECK(std::isnan(math::tanh(nan)));
  CHECK(std::isnan(math::erf(nan)));
}

// Returns sin(x + quarters * pi/2) for |x| up to a million, by the rest of x over a multiple of pi/2, whose digits are in three parts: the C
// library of mingw-w64 has the processor's fsin and fcos, which know 66 bits of pi.
long double sine(long double x, int quarters) {
  const long double turn = std::nearbyint(x * 0.6366197723675813L);
  const long double rest = ((x - turn * 0x1.921FB54442p+0L) - turn * 0x0.D18469898Cp-40L) - turn * 0x0.C51701B839A2p-80L;
  const long double sines[] = {std::sin(rest), std::cos(rest), -std::sin(rest), -std::cos(rest)};
  return sines[(static_cast<long>(turn) + quarters) & 3];
}

TEST_CASE("double exp, log, sin, cos and pow are within the stated error") {
  const auto sin = [](double x) { return math::sin(x); };
  const auto cos = [](double x) { return math::cos(x); };
  const auto exp = [](double x) { return math::exp(x); };
  const auto log = [](double x) { return math::log(x); };
  const auto sin_l = [](long double x) { return sine(x, 0); };
  const auto cos_l = [](long double x) { return sine(x, 1); };
  const auto exp_l = [](long double x) { return std::exp(x); };
  const auto log_l = [](long double x) { return std::log(x); };
  const double e = std::max(worst_f64(-707.9, 709.7, exp, exp_l), worst_f64(-1, 1, exp, exp_l));
  const double l = std::max({worst_f64(1e-300, 1e-290, log, log_l), worst_f64(0.5, 2, log, log_l),
                             worst_f64(0.999, 1.001, log, log_l), worst_f64(1, 1e9, log, log_l),
                             worst_f64(0, 1e-310, log, log_l)});
  const double s = std::max({worst_f64(-7, 7, sin, sin_l), worst_f64(-1e3, 1e3, sin, sin_l),
                             worst_f64(-1e6, 1e6, sin, sin_l)});
  const double c = std::max({worst_f64(-7, 7, cos, cos_l), worst_f64(-1e3, 1e3, cos, cos_l),
                             worst_f64(-1e6, 1e6, cos, cos_l)});
  double p = 0;
  std::mt19937_64 random(3);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < 400'000; ++i) {
    const double x = std::exp((unit() * 2 - 1) * 20), y = (unit() * 2 - 1) * 46 / std::max(1.0, std::abs(std::log(x)));
    p = std::max(p, ulps(math::pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))));
  }
  for (int position = 0; position < 1'000'000; position += 101) {  // multiples of pi/2 are the hard ones
    const double x = position * 1.5707963267948966;
    if (x > 1e6) break;
    REQUIRE(ulps(math::sin(x), sine(x, 0)) <= 1.0);
    REQUIRE(ulps(math::cos(x), sine(x, 1)) <= 1.0);
  }
  CAPTURE(e, l, s, c, p);
  CHECK(e <= 1.0);
  CHECK(l <= 1.0);
  CHECK(s <= 1.0);
  CHECK(c <= 1.0);
  CHECK(p <= 2.0);
}

TEST_CASE("double special values") {
  CHECK(math::exp(-kInfD) == 0.0);
  CHECK(math::exp(kInfD) == kInfD);
  CHECK(math::exp(709.8) == kInfD);
  CHECK(math::exp(0.0) == 1.0);
  CHECK(math::log(1.0) == 0.0);
  CHECK(math::log(0.0) == -kInfD);
  CHECK(math::log(kInfD) == kInfD);
  CHECK(std::isnan(math::log(-1.0)));
  CHECK(std::isnan(math::exp(std::nan(""))));
  CHECK(std::isnan(math::sin(kInfD)));
  CHECK(std::isnan(math::cos(std::nan(""))));
  CHECK(math::sin(0.0) == 0.0);
  CHECK(math::cos(0.0) == 1.0);
  CHECK(math::pow(2.0, 10.0) == 1024.0);
  CHECK(math::pow(10000.0, 0.0) == 1.0);
  CHECK(math::pow(-2.0, 3.0) == -8.0);
  CHECK(math::pow(-2.0, 4.0) == 16.0);
  CHECK(std::isnan(math::pow(-2.0, 0.5)));
  CHECK(math::pow(0.0, 2.0) == 0.0);
  CHECK(math::pow(0.0, -2.0) == kInfD);
  CHECK(math::pow(2.0, 1e300) == kInfD);
  CHECK(math::pow(2.0, -1e300) == 0.0);
  CHECK(math::pow(0.5, kInfD) == 0.0);
  CHECK(math::pow(1.0, kInfD) == 1.0);
  CHECK(math::pow(kInfD, -1.0) == 0.0);
}

TEST_CASE("inlined functions vectorise to the bits of the scalar ones") {
  std::vector<float> x(4096), e(x.size()), t(x.size()), r(x.size());
  std::mt19937 random(11);
  for (float& v : x) v = (static_cast<float>(random() >> 8) * 0x1p-24f * 2 - 1) * 95.0f;
  x[0] = kInf, x[1] = -kInf, x[2] = 0.0f, x[3] = -0.0f, x[4] = 1e-40f;
  for (std::size_t i = 0; i < x.size(); ++i) e[i] = math::inlined::exp(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) t[i] = math::inlined::tanh(x[i] * 0.05f);
  for (std::size_t i = 0; i < x.size(); ++i) r[i] = math::inlined::erf(x[i] * 0.05f);
  bool same = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    same = same && std::bit_cast<std::uint32_t>(e[i]) == std::bit_cast<std::uint32_t>(math::exp(x[i]));
    same = same && std::bit_cast<std::uint32_t>(t[i]) == std::bit_cast<std::uint32_t>(math::tanh(x[i] * 0.05f));
    same = same && std::bit_cast<std::uint32_t>(r[i]) == std::bit_cast<std::uint32_t>(math::erf(x[i] * 0.05f));
  }
  CHECK(same);
}

TEST_CASE("the same bits everywhere") {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](std::uint64_t bits) { hash = (hash ^ bits) * 1099511628211u; };
  for (int i = -20000; i <= 20000; ++i) {
    const double x = i * 0.0043;
    const float f = static_cast<float>(x);
    add(std::bit_cast<std::uint32_t>(math::exp(f)));
    add(std::bit_cast<std::uint32_t>(math::tanh(f * 0.1f)));
    add(std::bit_cast<std::uint32_t>(math::erf(f * 0.1f)));
    add(std::bit_cast<std::uint64_t>(math::exp(x)));
    add(std::bit_cast<std::uint64_t>(math::sin(x * 1000)));
    add(std::bit_cast<std::uint64_t>(math::cos(x * 1000)));
    if (i > 0) add(std::bit_cast<std::uint64_t>(math::log(x)));
    if (i > 0) add(std::bit_cast<std::uint64_t>(math::pow(x, 1.7)));
  }
  CHECK(hash == 577058223504070331u);
}

}  // namespace test_math
