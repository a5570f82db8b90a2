// Arcee AFM 4.5B (Arcee AI 2025): Llama with a plain FFN and squared ReLU.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kArcee = [] {
  Architecture table = kLlama;
  table.name = "arcee";
  table.ffn = Ffn::plain;
  table.activation = ActivationKind::squared_relu;
  table.experts = {};
  table.tensors = with_attention_biases(kLlamaTensors).without(Role::ffn_gate).optional(Role::ffn_up_bias, Role::ffn_down_bias);
  return table;
}();

}  // namespace tessera::arch
