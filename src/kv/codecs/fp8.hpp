// FP8: each number x of a key or value is stored as x / scale in E4M3 (core/float8.hpp). There is one f32 scale for each token and head,
// which maps the largest |x| to 448, E4M3's largest number. Numbers are not rotated: E4M3 is a floating-point type, so a small number keeps
// its four significant bits beside an outlier.
// The page has 256 * scale instead of the scale. Reason: kernels read an element's bits as the bits of an F16 number. That number is 1 /
// 256 of the element's value, and the factor 256 makes up for this.
// If a number is a NaN or an infinity, the scale is NaN, and so is each decoded number of the token and head.
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
  // Returns the scale as it is stored, for numbers whose largest magnitude is `largest`; NaN if `largest` is NaN (largest_of()).
  static constexpr float scale_from(float largest) noexcept { return kv::scale_from(largest, kLargestE4M3 / 256.0f); }
  static constexpr Element encode(float value, float scale) noexcept {
    return scale == scale ? f32_to_e4m3(value / scale * 256.0f) : Element{0};
  }
  static constexpr float decode(Element element, float scale) noexcept { return f16_to_f32(e4m3_as_f16(element)) * scale; }
};

}  // namespace tessera::kv
