// F32: numbers are stored unchanged.
#pragma once

#include <cstddef>

namespace tessera::kv {

struct F32 {
  using Element = float;
  static constexpr std::size_t pair = 1;
  static constexpr bool has_scale = false;
  static constexpr bool rotates = false;

  static constexpr Element encode(float value, float) noexcept { return value; }
  static constexpr float decode(Element element, float) noexcept { return element; }
};

}  // namespace tessera::kv
