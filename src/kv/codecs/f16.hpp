// F16: IEEE binary16, rounded to nearest, ties to even. Magnitudes of 65520 and more become infinity; NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/float16.hpp"

namespace tessera::kv {

struct F16 {
  using Element = std::uint16_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = false;
  static constexpr bool rotates = false;

  static constexpr Element encode(float value, float) noexcept { return f32_to_f16(value); }
  static constexpr float decode(Element element, float) noexcept { return f16_to_f32(element); }
};

}  // namespace tessera::kv
