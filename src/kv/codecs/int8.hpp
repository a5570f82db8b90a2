// INT8: q = round(x / scale), ties to even, of rotated numbers (kv/rotation.hpp), with one f32 scale for each token and
// head: the largest |x| over 127, so that q lies in -127..127. The scale is at least the smallest normal float: of
// smaller values only the larger survive, and nothing divides by zero. A NaN or an infinity, or numbers that have no
// finite sum, make the scale NaN, and with it every value of that token and head: what has gone wrong is seen, not
// clamped away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <tessera/core/dtype.hpp>

namespace tessera::kv {

struct Int8 {
  static constexpr DType dtype = DType::int8;
  using Element = std::int8_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = true;
  static constexpr bool rotates = true;

  static constexpr float scale_of(const float* values, std::size_t n) noexcept {
    float largest = 0.0f;
    bool finite = true;
    for (std::size_t i = 0; i < n; ++i) {
      const float magnitude = values[i] < 0.0f ? -values[i] : values[i];
      finite = finite && magnitude <= std::numeric_limits<float>::max();  // false for NaN
      largest = magnitude > largest ? magnitude : largest;
    }
    return scale_from(finite ? largest : std::numeric_limits<float>::quiet_NaN());
  }
  // Of the largest magnitude; NaN if there is none because a value is a NaN or an infinity.
  static constexpr float scale_from(float largest) noexcept {
    if (!(largest <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
    constexpr float kLeast = std::numeric_limits<float>::min();
    constexpr float kMost = 0x1.020406p121f;  // 127 times it is finite: so is what comes of the largest float
    const float scale = largest / 127.0f;
    return scale < kLeast ? kLeast : scale > kMost ? kMost : scale;
  }
  static constexpr Element encode(float value, float scale) noexcept {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float rounded = (value / scale + kShift) - kShift;
    return rounded >= -127.0f && rounded <= 127.0f ? static_cast<Element>(rounded) : Element{0};  // NaN: 0
  }
  static constexpr float decode(Element element, float scale) noexcept { return static_cast<float>(element) * scale; }
};

}  // namespace tessera::kv
