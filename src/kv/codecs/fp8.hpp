// FP8: E4M3 (core/float8.hpp) of x / scale, with one f32 scale for each token and head. Not rotated, because a number that is small
// beside an outlier keeps its four significant bits. The largest |x| becomes 448. The stored scale is 256 times that scale: kernels read
// the elements' bits as F16 and multiply by it. A NaN or an infinity makes the scale NaN, and so every value of the token and head.
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
  // Returns the stored scale for the largest magnitude; NaN if that is NaN (largest_of()).
  static constexpr float scale_from(float largest) noexcept { return kv::scale_from(largest, kLargestE4M3 / 256.0f); }
  static constexpr Element encode(float value, float scale) noexcept {
    return scale == scale ? f32_to_e4m3(value / scale * 256.0f) : Element{0};
  }
  static constexpr float decode(Element element, float scale) noexcept { return f16_to_f32(e4m3_as_f16(element)) * scale; }
};

}  // namespace tessera::kv
