// SmolLM3 (Hugging Face 2025): Llama, in which every fourth layer does not rotate. The converter permutes Q and K rows as Llama's.
#pragma once

#include "model/arch/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kSmolLm3 = [] {
  Architecture table = kLlama;
  table.name = "smollm3";
  table.unrotated_period = 4;
  return table;
}();

}  // namespace tessera::arch
