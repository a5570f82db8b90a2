// DeepSeekMoE 16B (Dai et al. 2024): Llama whose layers have experts and a shared expert, but for the first. The experts are weighted by the
// softmax over all experts (not renormalised).
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
