// SmolLM3 (Hugging Face 2025): like Llama, but every fourth layer has no rope. The converter permutes the rows of Q and K as for Llama.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kSmolLm3 = [] {
  Architecture table = kLlama;
  table.name = "smollm3";
  table.unrotated_period = 4;
  return table;
}();

}  // namespace tessera::arch
