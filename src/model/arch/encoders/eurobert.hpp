// EuroBERT (Boizard et al. 2025): like Llama, but each row sees the whole text.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kEuroBert = [] {
  Architecture table = kLlama;
  table.name = "eurobert";
  table.experts = {};
  table.tensors = with_attention_biases(kLlamaTensors).without(Role::output).optional(Role::ffn_gate_bias, Role::ffn_up_bias, Role::ffn_down_bias);
  table.encodes = true;
  return table;
}();

}  // namespace tessera::arch
