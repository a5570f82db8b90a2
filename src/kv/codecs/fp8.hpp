// FP8: E4M3 (core/float8.hpp) of x over one f32 scale for each token and head, not rotated: what is small beside an outlier
// keeps its four digits. The largest |x| becomes 448. What is stored is 256 times that scale, by which F16 of the same bits are
// multiplied: kernels read them so. A NaN or an infinity makes the scale NaN, and with it every value of that token and head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/float8.hpp"
#include "kv/codecs/largest.hpp"

namespace tessera::kv {

struct Fp8 {
  using Element = std::uint8_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = true;
  static constexpr bool rotates = false;

  static constexpr float scale_of(const float* values, std::size_t n) noexcept { return scale_from(largest_of(values, n)); }
  // Of the largest magnitude; NaN if there is none because a value is a NaN or an infinity.
  static constexpr float scale_from(float largest) noexcept { return kv::scale_from(largest, kLargestE4M3 / 256.0f); }
  static constexpr Element encode(float value, float scale) noexcept {
    return scale == scale ? f32_to_e4m3(value / scale * 256.0f) : Element{0};
  }
  static constexpr float decode(Element element, float scale) noexcept { return f16_to_f32(e4m3_as_f16(element)) * scale; }
};

}  // namespace tessera::kv
