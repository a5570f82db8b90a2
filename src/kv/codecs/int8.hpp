// INT8: q = round(x / scale), ties to even, of rotated numbers (kv/rotation.hpp), with one f32 scale for each token and
// head: the largest |x| over 127, so that q lies in -127..127. The scale is at least the smallest normal float: of
// smaller values only the larger survive, and nothing divides by zero. A NaN or an infinity, or numbers that have no
// finite sum, make the scale NaN, and with it every value of that token and head: what has gone wrong is seen, not
// clamped away.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/codecs/largest.hpp"

namespace tessera::kv {

struct Int8 {
  using Element = std::int8_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = true;
  static constexpr bool rotates = true;

  static constexpr float scale_of(const float* values, std::size_t n) noexcept { return scale_from(largest_of(values, n)); }
  // Of the largest magnitude; NaN if there is none because a value is a NaN or an infinity.
  static constexpr float scale_from(float largest) noexcept { return kv::scale_from(largest, 127.0f); }
  static constexpr Element encode(float value, float scale) noexcept {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float rounded = (value / scale + kShift) - kShift;
    return rounded >= -127.0f && rounded <= 127.0f ? static_cast<Element>(rounded) : Element{0};  // NaN: 0
  }
  static constexpr float decode(Element element, float scale) noexcept { return static_cast<float>(element) * scale; }
};

}  // namespace tessera::kv
