// Half and bfloat16 conversions against arithmetic on their fields in double, against the nearest entry of a table of
// all halves, and against the compiler's and Eigen's own types where they exist.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/float16.hpp"

#include "catch.hpp"

#if __has_include(<eigen3/Eigen/Core>)
#define EIGEN_NO_DEBUG
#include <eigen3/Eigen/Core>
#define TESSERA_TEST_EIGEN 1
#endif

namespace test_float16 {

namespace {

using namespace tessera;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
bool is_nan_half(std::uint32_t half) { return (half & 0x7fffu) > 0x7c00u; }

// A half's value from its fields; exponent 31 is for the caller.
double half_value(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 31u);
  const int mantissa = static_cast<int>(half & 1023u);
  const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000u) != 0 ? -size : size;
}

// The nearest half by search in the table of all non-negative ones; 2^16 stands for infinity, as IEEE rounds.
std::uint32_t nearest_half(float value) {
  static const std::vector<double> table = [] {
    std::vector<double> t;
    for (std::uint32_t h = 0; h < 0x7c00u; ++h) t.push_back(half_value(h));
    t.push_back(65536.0);
    return t;
  }();
  const std::uint32_t sign = bits_of(value) >> 31 << 15;
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65536.0) return sign | 0x7c00u;
  const auto above = static_cast<std::uint32_t>(std::upper_bound(table.begin(), table.end(), size) - table.begin());
  const std::uint32_t below = above - 1;
  const double down = size - table[below], up = table[above] - size;
  if (down != up) return sign | (down < up ? below : above);
  return sign | (below % 2 == 0 ? below : above);
}

// Floats where rounding can go wrong: every half, the points halfway to its neighbour, and a step to either side.
template <class Fn>
void for_tricky_floats(Fn&& fn) {
  for (std::uint32_t h = 0; h < 0x7c00u; ++h) {
    const auto next = h + 1 < 0x7c00u ? half_value(h + 1) : 65536.0;
    const auto middle = static_cast<float>((half_value(h) + next) / 2);
    for (const float value : {static_cast<float>(half_value(h)), middle}) {
      for (const std::uint32_t sign : {0u, 0x80000000u}) {
        for (int step = -1; step <= 1; ++step) {
          if (value == 0 && step < 0) continue;
          fn(float_of((bits_of(value) + static_cast<std::uint32_t>(step)) | sign));
        }
      }
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 1000000; ++i) fn(float_of(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 300000; ++i)  // the exponents where halves live
    fn(float_of((static_cast<std::uint32_t>(random()) & 0x807fffffu) | ((90u + random() % 56u) << 23)));
}

bool is_nan(float value) { return (bits_of(value) & 0x7fffffffu) > 0x7f800000u; }

}  // namespace

TEST_CASE("every half has the value of its fields, and comes back") {
  std::size_t wrong = 0, lost = 0;
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(h));
    if (is_nan_half(h)) {
      wrong += !is_nan(value);
      lost += !is_nan_half(f32_to_f16(value));
      continue;
    }
    const bool infinite = (h & 0x7c00u) == 0x7c00u;
    wrong +=
        bits_of(value) != (infinite ? ((h & 0x8000u) << 16 | 0x7f800000u) : bits_of(static_cast<float>(half_value(h))));
    lost += f32_to_f16(value) != h;
  }
  CHECK(wrong == 0);
  CHECK(lost == 0);
}

TEST_CASE("f32 rounds to the nearest half, ties to even") {
  std::size_t wrong = 0;
  for_tricky_floats([&](float value) {
    const std::uint32_t half = f32_to_f16(value);
    wrong += is_nan(value) ? !is_nan_half(half) : half != nearest_half(value);
  });
  CHECK(wrong == 0);
}

TEST_CASE("halves agree with other implementations") {
#ifdef __FLT16_MANT_DIG__
  std::size_t wrong = 0;
  for_tricky_floats([&](float value) {
    if (is_nan(value)) return;
    wrong += std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)) != f32_to_f16(value);
  });
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    if (is_nan_half(h)) continue;
    const auto half = static_cast<std::uint16_t>(h);
    wrong += bits_of(static_cast<float>(std::bit_cast<_Float16>(half))) != bits_of(f16_to_f32(half));
  }
  CHECK(wrong == 0);
#else
  tessera::tests::skip("the compiler has no _Float16");
#endif
#ifdef TESSERA_TEST_EIGEN
  std::size_t differ = 0;
  for_tricky_floats([&](float value) {
    if (is_nan(value)) return;
    differ += Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(value)) != f32_to_f16(value);
    differ += Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(value)) != f32_to_bf16(value);
  });
  CHECK(differ == 0);
#else
  tessera::tests::skip("no Eigen headers");
#endif
}

TEST_CASE("bfloat16 is the upper half of a float, rounded to nearest, ties to even") {
  std::size_t wrong = 0;
  for (std::uint32_t b = 0; b < 0x10000u; ++b) {
    const float value = bf16_to_f32(static_cast<std::uint16_t>(b));
    wrong += bits_of(value) != b << 16;
    wrong += is_nan(value) ? !is_nan(bf16_to_f32(f32_to_bf16(value))) : f32_to_bf16(value) != b;
    if ((b & 0x7f80u) == 0x7f80u) continue;
    // Halfway to the next is even's; a bit less is ours, a bit more the next's (which may be infinity).
    wrong += f32_to_bf16(float_of(b << 16 | 0x7fffu)) != b;
    wrong += f32_to_bf16(float_of(b << 16 | 0x8000u)) != (b % 2 == 0 ? b : b + 1);
    wrong += f32_to_bf16(float_of(b << 16 | 0x8001u)) != b + 1;
  }
  CHECK(wrong == 0);
}

}  // namespace test_float16
