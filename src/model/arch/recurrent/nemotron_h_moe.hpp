// Nemotron 3 Nano, Super and Ultra (NVIDIA 2025): like Nemotron-H, but the FFNs are experts without gates, and a shared expert. The
// experts' scores are sigmoids, with a bias for the choice. In the larger models one matrix narrows the experts' input, and another
// widens their output again. The MTP layers after the last layer are not loaded.
#pragma once

#include "model/arch/recurrent/nemotron_h.hpp"

namespace tessera::arch {

inline constexpr Architecture kNemotronHMoe = [] {
  Architecture table = kNemotronH;
  table.name = "nemotron_h_moe";
  table.tensors = with_experts(kNemotronH.tensors)
                      .without(Role::experts_gate_up, Role::experts_gate, Role::shared_gate, Role::shared_weight)
                      .required(Role::experts_in, Role::experts_out)
                      .optional(Role::choice_bias);
  table.experts = {.some = true, .routing = RoutingKind::sigmoid, .ffn = Ffn::plain_experts};
  table.guesses_further = true;
  return table;
}();

}  // namespace tessera::arch
