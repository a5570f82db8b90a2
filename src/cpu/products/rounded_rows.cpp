#include "cpu/products/rounded_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tessera::cpu {

namespace {

constexpr float kHighestInteger = 127.0f, kLowestInteger = -128.0f, kHighestFp8 = 448.0f;
constexpr std::size_t kBlock = 32;  // values of a block of int8x32

// The rule by which a group's values are rounded: x becomes the integer or FP8 number nearest to x / scale + zero. Numbers outside of the
// range become its smallest or largest number. The range is -127 to 127 (int8), -128 to 127 (int8_with_zero) or -448 to 448 (fp8).
struct Grid {
  float scale = 0.0f;  // NaN: a value is not finite; 0: all numbers are 0
  float zero = 0.0f;

  [[nodiscard]] bool is_plain() const noexcept { return scale > 0.0f; }
};

struct Range {
  float low = 0.0f, high = 0.0f;  // least and largest of the values and 0
  bool finite = true;
};

Range range_of(std::span<const float> x) noexcept {
  Range range;
  std::uint32_t top = 0;  // the largest of the values' bits without the sign; larger than infinity's bits if there is a NaN
  for (const float value : x) {
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
    top = std::max(top, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  }
  range.finite = top < 0x7f800000u;
  return range;
}

// Rounds to the nearest integer, even at ties. |x| is below 2^22.
float nearest(float x) noexcept {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;  // the sum rounds
}

Grid grid_of(const InputRounding& how, std::size_t matrix, std::span<const float> x) noexcept {
  const Range range = range_of(x);
  if (!range.finite) return {.scale = std::numeric_limits<float>::quiet_NaN()};
  if (!how.scales.empty()) {
    const std::size_t at = how.scales.size() == 1 ? 0 : matrix;
    return {.scale = how.scales[at], .zero = how.zeros.empty() ? 0.0f : how.zeros[at]};
  }
  const float top = std::max(-range.low, range.high);
  if (top < kLeastTop) return {};
  switch (how.to) {
    case RoundedInputs::int8: return {.scale = top / 127.5f};
    case RoundedInputs::fp8: return {.scale = top / kHighestFp8};
    case RoundedInputs::int8_with_zero: {
      const float scale = (range.high - range.low) / 255.0f;
      return {.scale = scale, .zero = nearest(std::clamp(kLowestInteger - range.low / scale, kLowestInteger, kHighestInteger))};
    }
    case RoundedInputs::none: break;
  }
  return {};
}

// Returns the nearest number of FP8 E4M3, even at ties. |x| is at most 448.
float nearest_fp8(float x) noexcept {
  const float least_normal = 0x1p-6f, step = 0x1p-9f;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float normal = std::bit_cast<float>((bits + 0x7ffffu + ((bits >> 20) & 1u)) & ~0xfffffu);
  const float small = nearest(x / step) * step;
  return std::fabs(x) < least_normal ? small : normal;
}

// Writes the rounded numbers of a group: integers or FP8 numbers, not yet multiplied by the scale. If the grid has a zero, the zero is
// subtracted from them.
void write_numbers(RoundedInputs to, const Grid& grid, std::span<const float> x, float* out) noexcept {
  switch (to) {
    case RoundedInputs::int8:
      for (std::size_t i = 0; i < x.size(); ++i) out[i] = nearest(std::clamp(x[i] / grid.scale, -kHighestInteger, kHighestInteger));
      return;
    case RoundedInputs::int8_with_zero:
      for (std::size_t i = 0; i < x.size(); ++i) {
        out[i] = nearest(std::clamp(x[i] / grid.scale + grid.zero, kLowestInteger, kHighestInteger)) - grid.zero;
      }
      return;
    case RoundedInputs::fp8:
      for (std::size_t i = 0; i < x.size(); ++i) out[i] = nearest_fp8(std::clamp(x[i] / grid.scale, -kHighestFp8, kHighestFp8));
      return;
    case RoundedInputs::none: return;
  }
}

// Calls fn(first, count) for each group of a row of n values.
template <class Fn>
void by_groups(const InputRounding& how, std::size_t n, Fn fn) {
  const std::size_t size = how.group == 0 ? n : how.group;
  for (std::size_t first = 0; first < n; first += size) fn(first, std::min(size, n - first));
}

template <class T>
void put(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

// Writes a row in the form int8x32: the model's own integers, and for each block the scale of its group (InputRounding::group). Nothing is
// rounded a second time. Precondition: the model itself rounds the row to 8-bit integers. `group`: rows of a group of prepared rows.
void prepare_integers(const InputRounding& how, std::size_t matrix, std::span<const float> x, float* scratch, std::byte* out, std::size_t group) noexcept {
  const RowLayout row = row_layout(InputForm::int8x32, x.size());
  by_groups(how, x.size(), [&](std::size_t first, std::size_t count) {
    const Grid grid = grid_of(how, matrix, x.subspan(first, count));
    float* numbers = scratch + first;
    if (grid.is_plain()) write_numbers(how.to, grid, x.subspan(first, count), numbers);
    else std::fill_n(numbers, count, 0.0f);
    for (std::size_t at = first; at < first + count; at += kBlock) {
      std::int32_t sum = 0;
      std::int8_t q[kBlock];
      for (std::size_t i = 0; i < kBlock; ++i) {
        const auto own = static_cast<std::int32_t>(scratch[at + i]);
        q[i] = static_cast<std::int8_t>(own);
        sum += own;
      }
      std::memcpy(out + in_group(at, group), q, kBlock);
      put(out + in_group(row.scales + at / kBlock * sizeof(float), group), grid.scale);
      put(out + in_group(row.sums + at / kBlock * sizeof(std::int32_t), group), sum);
    }
  });
  for (std::size_t at = x.size(); at % 64 != 0; ++at) out[in_group(at, group)] = std::byte{};
}

}  // namespace

bool enters_int8(const InputRounding& how, InputForm form) noexcept {
  return how.to == RoundedInputs::int8 && form == InputForm::int8x32 && how.group % kBlock == 0;
}

std::string name_of(const InputRounding& how) {
  const char* number = how.to == RoundedInputs::int8 ? "int8" : how.to == RoundedInputs::int8_with_zero ? "int8-zero" : "fp8";
  if (how.to == RoundedInputs::none) return {};
  if (!how.scales.empty()) return std::string(number) + "-tensor";
  return how.group == 0 ? std::string(number) + "-token" : std::string(number) + "-group" + std::to_string(how.group);
}

void round_row(const InputRounding& how, std::size_t matrix, std::span<const float> x, float* out) noexcept {
  by_groups(how, x.size(), [&](std::size_t first, std::size_t count) {
    const Grid grid = grid_of(how, matrix, x.subspan(first, count));
    float* to = out + first;
    if (!grid.is_plain()) {
      std::fill_n(to, count, grid.scale);
      return;
    }
    write_numbers(how.to, grid, x.subspan(first, count), to);
    for (std::size_t i = 0; i < count; ++i) to[i] *= grid.scale;
  });
}

void prepare_rounded(const InputRounding& how, std::size_t matrix, PrepareFn prepare, std::span<const float> x, float* scratch, InputForm form,
                     std::byte* out, std::size_t group) noexcept {
  if (enters_int8(how, form)) return prepare_integers(how, matrix, x, scratch, out, group);
  round_row(how, matrix, x, scratch);
  prepare(scratch, x.size(), out, group);
}

}  // namespace tessera::cpu
