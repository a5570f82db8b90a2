// Qwen3-30B-A3B and its relatives (Qwen Team 2025): like Qwen3, but the FFNs are experts, weighted by the softmax over all experts,
// renormalised.
#pragma once

#include "model/arch/dense/qwen3.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3Moe = [] {
  Architecture table = kQwen3;
  table.name = "qwen3moe";
  table.tensors = with_experts(kQwen3.tensors);
  table.experts = {.some = true};
  return table;
}();

}  // namespace tessera::arch
