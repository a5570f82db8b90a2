// Gemma 4 (Google 2026), text: Gemma 3 whose layers that see everything have larger heads, fewer KV heads and a rope of
// their own, most pairs of which do not turn (rope_freqs.weight divides their frequencies by 1e30). Scores are not scaled;
// values are normed without a weight, and are the keys as they come from their product where attn_v.weight is missing.
// The E models give each layer a vector of each token, let the last layers read earlier ones' keys and values and widen
// their FFN; 26B-A4B has experts beside the dense FFN. Norms have no 1 to be added.
#pragma once

#include "model/arch/gemma3.hpp"

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
