// Qwen3-VL with experts (Qwen Team 2025), the part that reads text: Qwen3 with experts.
#pragma once

#include "model/arch/experts/qwen3moe.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3VlMoe = [] {
  Architecture table = kQwen3Moe;
  table.name = "qwen3vlmoe";
  return table;
}();

}  // namespace tessera::arch
