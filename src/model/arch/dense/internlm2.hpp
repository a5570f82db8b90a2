// InternLM 2 and 2.5 (Shanghai AI Laboratory 2024): like Llama. In folders, one matrix has the rows of Q, K and V. For each query group it
// has first the rows of the group's query heads, then those of the key head, then those of the value head.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kInternLm2 = [] {
  Architecture table = kLlama;
  table.name = "internlm2";
  table.experts = {};
  table.tensors = with_attention_biases(kLlamaTensors).optional(Role::attn_qkv, Role::attn_qkv_bias);
  return table;
}();

}  // namespace tessera::arch
