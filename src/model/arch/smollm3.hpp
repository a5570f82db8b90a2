// SmolLM3 (Hugging Face 2025): Llama, where every fourth layer does not rotate. Q and K rows were permuted as Llama's
// are.
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
