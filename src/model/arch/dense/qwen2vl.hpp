// Qwen2-VL and Qwen2.5-VL (Wang et al. 2024; Bai et al. 2025), the part that reads text: Qwen2. For text, the rope sections for images have
// no effect.
#pragma once

#include "model/arch/dense/qwen2.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen2Vl = [] {
  Architecture table = kQwen2;
  table.name = "qwen2vl";
  return table;
}();

}  // namespace tessera::arch
