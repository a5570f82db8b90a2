// Qwen2-VL and Qwen2.5-VL (Wang et al. 2024; Bai et al. 2025), the part that reads text: Qwen2. The rope sections for images do not matter to
// text.
#pragma once

#include "model/arch/dense/qwen2.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen2Vl = [] {
  Architecture table = kQwen2;
  table.name = "qwen2vl";
  return table;
}();

}  // namespace tessera::arch
