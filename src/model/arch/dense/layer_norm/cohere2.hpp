// Command R7B and Command A (Cohere 2024, 2025): like Command R, but three of four layers have a sliding window, and the fourth sees
// everything and has no rope.
#pragma once

#include "model/arch/dense/layer_norm/command_r.hpp"

namespace tessera::arch {

inline constexpr Architecture kCohere2 = [] {
  Architecture table = kCommandR;
  table.name = "cohere2";
  table.windows = {.period = 4, .rope = WindowedRope::alone};
  return table;
}();

}  // namespace tessera::arch
