// ERNIE 4.5, dense (Baidu 2025): Llama, trained with neighbours that rotate together, so that no rows were permuted;
// biases in some.
#pragma once

#include "model/arch/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kErnie45 = [] {
  Architecture table = kLlama;
  table.name = "ernie4_5";
  table.experts = {};  // those are another architecture's, ernie4_5-moe
  table.tensors = with_attention_biases(kLlamaTensors).optional(Role::ffn_gate_bias, Role::ffn_up_bias, Role::ffn_down_bias);
  return table;
}();

}  // namespace tessera::arch
