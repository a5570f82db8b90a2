// BF16: the upper half of an f32, rounded to nearest, ties to even. BF16 has the range of F32, with 8 bits of precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/float16.hpp"

namespace tessera::kv {

struct BF16 {
  using Element = std::uint16_t;
  static constexpr std::size_t pair = 2;
  static constexpr bool has_scale = false;
  static constexpr bool rotates = false;

  static constexpr Element encode(float value, float) noexcept { return f32_to_bf16(value); }
  static constexpr float decode(Element element, float) noexcept { return bf16_to_f32(element); }
};

}  // namespace tessera::kv
