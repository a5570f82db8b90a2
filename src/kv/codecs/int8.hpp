// INT8: rotated numbers (kv/rotation.hpp) are stored as q = round(x / scale), ties to even, with one f32 scale for each token and head. The
// scale is the largest |x| divided by 127, 126, 125 or 124, so q lies in -127..127. Of these four scales the codec takes the one with the
// smallest rounding error (best_scale.hpp): for 64 numbers the error is a tenth less than if the divisor were always 127.
// The scale is at least the smallest normal float, so that nothing is divided by zero. (Numbers below that limit lose precision.) If a
// number is a NaN or an infinity, or if a sum of the rotation overflows, the scale is NaN, and so is each decoded number of the token and
// head: the error shows in the results and is not hidden by clamping.
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
  static constexpr unsigned scales = 4;  // number of scales to choose from

  static constexpr float scale_of(const float* values, std::size_t n) noexcept {
    return best_scale<Int8>(largest_of(values, n), [&](float per_unit) { return lost_of<Int8>(values, n, per_unit); });
  }
  // Returns the i-th scale for numbers whose largest magnitude is `largest`; NaN if `largest` is NaN (largest_of()).
  static constexpr float scale_from(float largest, unsigned i) noexcept { return kv::scale_from(largest, times(i)); }
  // Returns the integer to which the i-th scale maps the number of largest magnitude.
  static constexpr float times(unsigned i) noexcept { return 127.0f - static_cast<float>(i); }
  // Returns the squared rounding error of a number, in units of the scale. per_unit is 1 / scale.
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
  static constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
};

}  // namespace tessera::kv
