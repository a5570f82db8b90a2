// Command R7B and Command A (Cohere 2024, 2025): Command R, in which three of four layers have a sliding window and the fourth does not
// rotate.
#pragma once

#include "model/arch/command_r.hpp"

namespace tessera::arch {

inline constexpr Architecture kCohere2 = [] {
  Architecture table = kCommandR;
  table.name = "cohere2";
  table.windows = {.period = 4, .rope = WindowedRope::alone};
  return table;
}();

}  // namespace tessera::arch
