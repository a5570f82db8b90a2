// INT8: q = round(x / scale), ties to even, of rotated numbers (kv/rotation.hpp), with one f32 scale for each token and head: the largest
// |x| divided by 127, 126, 125 or 124, so that q lies in -127..127. Each divisor makes another grid, which fits the numbers by chance; the
// one with the least error is taken, which for 64 numbers is a tenth less than with 127 alone (best_scale.hpp).
// The scale is at least the smallest normal float, so nothing divides by zero; smaller numbers lose precision. A NaN, an infinity, or
// numbers whose rotated sums are not finite make the scale NaN, and so every value of the token and head: the mistake is seen, not
// clamped away.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/codecs/best_scale.hpp"
#include "kv/codecs/largest.hpp"

namespace tessera::kv {

struct Int8 {
  using Element = std::int8_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = true;
  static constexpr bool rotates = true;
  static constexpr unsigned scales = 4;  // scales to choose from

  static constexpr float scale_of(const float* values, std::size_t n) noexcept {
    return best_scale<Int8>(largest_of(values, n), [&](float per_unit) { return lost_of<Int8>(values, n, per_unit); });
  }
  // Returns scale i for the largest magnitude; NaN if that is NaN (largest_of()).
  static constexpr float scale_from(float largest, unsigned i) noexcept { return kv::scale_from(largest, times(i)); }
  // Returns the value that the largest number becomes with scale i.
  static constexpr float times(unsigned i) noexcept { return 127.0f - static_cast<float>(i); }
  // Returns the squared error of a number, in steps of the grid.
  static constexpr float lost(float value, float per_unit) noexcept {
    const float x = value * per_unit, off = x - ((x + kShift) - kShift);
    return off * off;
  }
  static constexpr Element encode(float value, float scale) noexcept {
    const float rounded = (value / scale + kShift) - kShift;
    return rounded >= -127.0f && rounded <= 127.0f ? static_cast<Element>(rounded) : Element{0};  // NaN: 0
  }
  static constexpr float decode(Element element, float scale) noexcept { return static_cast<float>(element) * scale; }

 private:
  static constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
};

}  // namespace tessera::kv
