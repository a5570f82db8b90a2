// Gemma 4 (Google 2026), text: like Gemma 3, with these differences. The layers that see everything have larger heads, fewer KV heads and
// another rope. Most pairs of that rope do not turn, because rope_freqs.weight divides their frequencies by 1e30. Scores are not scaled.
// Values are normed without a weight. A layer without attn_v.weight uses the product of its key matrix as values too. The converter adds
// nothing to the norms' weights.
//
// The E models have an embedding of each token for each layer; their last layers read the keys and values of earlier layers, and have a
// wider FFN. The model 26B-A4B has experts beside the dense FFN.
#pragma once

#include "model/arch/gemma/gemma3.hpp"

namespace tessera::arch {

inline constexpr Architecture kGemma4 = [] {
  Architecture table = kGemma3;
  table.name = "gemma4";
  table.tensors = kGemma3.tensors.required(Role::rope_freqs)
                      .optional(Role::attn_v, Role::output_scale)
                      .required(Role::router, Role::router_norm, Role::expert_norm, Role::experts_gate, Role::experts_up,
                                Role::experts_down, Role::dense_post_norm, Role::experts_post_norm)
                      .optional(Role::experts_gate_up, Role::experts_scale)
                      .required(Role::per_layer_token_embd, Role::per_layer_model_proj, Role::per_layer_proj_norm,
                                Role::per_layer_gate, Role::per_layer_proj, Role::per_layer_post_norm);
  table.layers_scaled_by_width = 0;
  table.experts = {.some = true, .ffn = Ffn::dense_and_experts};
  table.score_scale = 1.0;
  table.value_norm = ValueNorm::unweighted;
  table.shares_keys = true;
  table.has_per_layer_inputs = true;
  return table;
}();

}  // namespace tessera::arch
