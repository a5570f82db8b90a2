// Qwen1.5-MoE and Qwen2-57B-A14B (Qwen Team 2024): like Qwen2, but the FFNs are experts and a shared expert. The experts are weighted by
// the softmax over all experts (not renormalised). The shared expert is weighted by a gate, computed for each token.
#pragma once

#include "model/arch/dense/qwen2.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen2Moe = [] {
  Architecture table = kQwen2;
  table.name = "qwen2moe";
  table.tensors = with_experts(kQwen2.tensors).required(Role::shared_weight);
  table.experts = {.some = true, .renormalise = Renormalise::no};
  return table;
}();

}  // namespace tessera::arch
