// ERNIE 4.5, dense (Baidu 2025): like Llama. The model was trained with rope pairs (2i, 2i+1), so the converter need not permute the rows
// of Q and K as for Llama. Some models have biases.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kErnie45 = [] {
  Architecture table = kLlama;
  table.name = "ernie4_5";
  table.experts = {};  // models with experts are another architecture, ernie4_5-moe
  table.tensors = with_attention_biases(kLlamaTensors).optional(Role::ffn_gate_bias, Role::ffn_up_bias, Role::ffn_down_bias);
  return table;
}();

}  // namespace tessera::arch
