// Qwen3.5 and 3.6 with experts (Qwen Team 2026): like Qwen3.5, but the FFNs are experts and a shared expert. The experts are weighted by
// the softmax over all experts, renormalised. The shared expert is weighted by a gate, computed for each token.
#pragma once

#include "model/arch/recurrent/qwen35.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen35Moe = [] {
  Architecture table = kQwen35;
  table.name = "qwen35moe";
  table.tensors = with_experts(kQwen35.tensors);
  table.experts = {.some = true};
  return table;
}();

}  // namespace tessera::arch
