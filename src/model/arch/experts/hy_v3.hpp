// Hunyuan 3 (Tencent 2026): like dots.llm1.
#pragma once

#include "model/arch/experts/dots1.hpp"

namespace tessera::arch {

inline constexpr Architecture kHunyuan3 = [] {
  Architecture table = kDots1;
  table.name = "hy_v3";
  return table;
}();

}  // namespace tessera::arch
