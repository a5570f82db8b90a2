// DeepSeekMoE 16B (Dai et al. 2024): like Llama, but each layer except the first has experts and a shared expert. The experts are weighted
// by the softmax over all experts (not renormalised).
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kDeepSeek = [] {
  Architecture table = kLlama;
  table.name = "deepseek";
  table.tensors = with_experts(kLlamaTensors);
  table.experts = {.some = true, .renormalise = Renormalise::no};
  return table;
}();

}  // namespace tessera::arch
