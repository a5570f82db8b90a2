// Qwen3-VL (Qwen Team 2025), the part that reads text: Qwen3. For text, the rope sections for images have no effect.
#pragma once

#include "model/arch/dense/qwen3.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3Vl = [] {
  Architecture table = kQwen3;
  table.name = "qwen3vl";
  return table;
}();

}  // namespace tessera::arch
