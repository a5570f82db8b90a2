// Says for each role how the ranks divide its weights. A divided matrix is divided by outputs: each rank computes a range of the outputs,
// from all inputs (which are gathered first if ranks have parts of them). So no sum is divided. If a role is missing in the table below,
// this file does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "model/load/roles.hpp"

namespace tessera::detail {

enum class Split : std::uint8_t {
  nowhere,     // a fused tensor: its parts have roles of their own
  everywhere,  // each rank has the whole weight
  by_token,    // rows of a table, or of the matrix that computes logits: a range of the vocabulary
  by_head,     // outputs: those of a range of query heads. If the mixer is not divided, its rank has the whole weight
  by_kv_head,  // outputs: those of a range of KV heads. The rest as by_head
  by_column,   // outputs: a range of the FFN's columns, which stay on the rank until the product after the activation
  by_output,   // outputs: a range, which is gathered at once
  of_heads,    // as by_output, and the inputs are gathered from heads. If the mixer is not divided, its rank has the whole weight
  of_columns,  // as by_output, and the inputs are gathered from columns
  of_experts,  // as of_columns, in the middle of Backend::experts()
  with_mixer,  // the rank that computes the layer's mixer has the whole weight
};

struct RoleSplit {
  Role role;
  Split split;
};

inline constexpr RoleSplit kRoleSplits[] = {
    {Role::token_embd, Split::by_token},
    {Role::position_embd, Split::everywhere},
    {Role::segment_embd, Split::everywhere},
    {Role::embd_norm, Split::everywhere},
    {Role::embd_norm_bias, Split::everywhere},
    {Role::output_norm, Split::everywhere},
    {Role::output_norm_bias, Split::everywhere},
    {Role::output_norm_early, Split::nowhere},
    {Role::output, Split::by_token},
    {Role::output_bias, Split::everywhere},
    {Role::rope_freqs, Split::everywhere},
    {Role::rope_factors_short, Split::everywhere},
    {Role::rope_factors_long, Split::everywhere},
    {Role::per_layer_token_embd, Split::by_token},
    {Role::per_layer_model_proj, Split::by_output},
    {Role::per_layer_proj_norm, Split::everywhere},
    {Role::embd_inner, Split::everywhere},
    {Role::embd_outer, Split::everywhere},
    {Role::head_in, Split::everywhere},
    {Role::head_in_bias, Split::everywhere},
    {Role::head_norm, Split::everywhere},
    {Role::head_norm_bias, Split::everywhere},
    {Role::head_out, Split::everywhere},
    {Role::head_out_bias, Split::everywhere},
    {Role::attn_norm, Split::everywhere},
    {Role::attn_norm_bias, Split::everywhere},
    {Role::attn_norm_2, Split::everywhere},
    {Role::attn_norm_2_bias, Split::everywhere},
    {Role::attn_qkv, Split::nowhere},
    {Role::attn_qkv_bias, Split::nowhere},
    {Role::attn_q, Split::by_head},
    {Role::attn_q_bias, Split::by_head},
    {Role::attn_k, Split::by_kv_head},
    {Role::attn_k_bias, Split::by_kv_head},
    {Role::attn_v, Split::by_kv_head},
    {Role::attn_v_bias, Split::by_kv_head},
    {Role::attn_q_gated, Split::nowhere},
    {Role::attn_gate, Split::by_head},
    {Role::attn_q_norm, Split::everywhere},
    {Role::attn_k_norm, Split::everywhere},
    {Role::attn_sinks, Split::by_head},
    {Role::attn_output, Split::of_heads},
    {Role::attn_output_bias, Split::everywhere},
    {Role::attn_post_norm, Split::everywhere},
    {Role::attn_sum_norm, Split::everywhere},
    {Role::attn_sum_norm_bias, Split::everywhere},
    {Role::latent_q, Split::nowhere},
    {Role::latent_q_a, Split::with_mixer},
    {Role::latent_q_a_norm, Split::with_mixer},
    {Role::latent_q_b, Split::nowhere},
    {Role::latent_q_plain, Split::with_mixer},
    {Role::latent_q_turned, Split::with_mixer},
    {Role::latent_kv_a, Split::nowhere},
    {Role::latent_kv, Split::with_mixer},
    {Role::latent_k_turned, Split::with_mixer},
    {Role::latent_kv_norm, Split::with_mixer},
    {Role::latent_k_b, Split::with_mixer},
    {Role::latent_v_b, Split::with_mixer},
    {Role::latent_output, Split::with_mixer},
    {Role::state_in, Split::nowhere},
    {Role::state_gate, Split::with_mixer},
    {Role::state_mixed, Split::with_mixer},
    {Role::state_steps_betas, Split::nowhere},
    {Role::state_steps, Split::with_mixer},
    {Role::state_betas, Split::with_mixer},
    {Role::state_conv, Split::with_mixer},
    {Role::state_conv_bias, Split::with_mixer},
    {Role::state_step_bias, Split::with_mixer},
    {Role::delta_rate, Split::with_mixer},
    {Role::scan_rate, Split::with_mixer},
    {Role::scan_skip, Split::with_mixer},
    {Role::delta_norm, Split::with_mixer},
    {Role::scan_norm, Split::with_mixer},
    {Role::state_out, Split::with_mixer},
    {Role::short_in, Split::nowhere},
    {Role::short_before, Split::with_mixer},
    {Role::short_behind, Split::with_mixer},
    {Role::short_mixed, Split::with_mixer},
    {Role::short_conv, Split::with_mixer},
    {Role::short_out, Split::with_mixer},
    {Role::ffn_norm, Split::everywhere},
    {Role::ffn_norm_bias, Split::everywhere},
    {Role::ffn_norm_late, Split::nowhere},
    {Role::ffn_gate_up, Split::nowhere},
    {Role::ffn_gate, Split::by_column},
    {Role::ffn_gate_bias, Split::by_column},
    {Role::ffn_up, Split::by_column},
    {Role::ffn_up_bias, Split::by_column},
    {Role::ffn_down, Split::of_columns},
    {Role::ffn_down_bias, Split::everywhere},
    {Role::ffn_post_norm, Split::everywhere},
    {Role::ffn_sum_norm, Split::everywhere},
    {Role::ffn_sum_norm_bias, Split::everywhere},
    {Role::router, Split::everywhere},
    {Role::router_bias, Split::everywhere},
    {Role::router_norm, Split::everywhere},
    {Role::choice_bias, Split::everywhere},
    {Role::experts_in, Split::by_output},
    {Role::experts_out, Split::by_output},
    {Role::expert_norm, Split::everywhere},
    {Role::experts_gate_up, Split::nowhere},
    {Role::experts_gate, Split::by_column},
    {Role::experts_gate_bias, Split::by_column},
    {Role::experts_up, Split::by_column},
    {Role::experts_up_bias, Split::by_column},
    {Role::experts_down, Split::of_experts},
    {Role::experts_down_bias, Split::by_output},
    {Role::experts_scale, Split::everywhere},
    {Role::dense_post_norm, Split::everywhere},
    {Role::experts_post_norm, Split::everywhere},
    {Role::shared_gate, Split::by_column},
    {Role::shared_up, Split::by_column},
    {Role::shared_down, Split::of_columns},
    {Role::shared_weight, Split::everywhere},
    {Role::per_layer_gate, Split::by_output},
    {Role::per_layer_proj, Split::by_output},
    {Role::per_layer_post_norm, Split::everywhere},
    {Role::output_scale, Split::everywhere},
    {Role::mtp_token_norm, Split::everywhere},
    {Role::mtp_hidden_norm, Split::everywhere},
    {Role::mtp_in, Split::nowhere},
    {Role::mtp_token_in, Split::by_output},
    {Role::mtp_hidden_in, Split::by_output},
    {Role::mtp_token_embd, Split::by_token},
    {Role::mtp_output_norm, Split::everywhere},
    {Role::mtp_output, Split::by_token},
    // Draft heads are refused with several ranks (ModelDivision::make()).
    {Role::medusa_block, Split::everywhere},
    {Role::medusa_block_bias, Split::everywhere},
    {Role::medusa_output, Split::everywhere},
    {Role::eagle_in_bias, Split::everywhere},
    {Role::eagle_features, Split::nowhere},
    {Role::eagle_low_in, Split::everywhere},
    {Role::eagle_mid_in, Split::everywhere},
    {Role::eagle_high_in, Split::everywhere},
    {Role::eagle_q, Split::nowhere},
    {Role::eagle_q_token, Split::everywhere},
    {Role::eagle_q_hidden, Split::everywhere},
    {Role::eagle_k, Split::nowhere},
    {Role::eagle_k_token, Split::everywhere},
    {Role::eagle_k_hidden, Split::everywhere},
    {Role::eagle_v, Split::nowhere},
    {Role::eagle_v_token, Split::everywhere},
    {Role::eagle_v_hidden, Split::everywhere},
};

constexpr bool all_roles_are_split() noexcept {
  for (std::size_t i = 0; i < std::size(kRoleSplits); ++i) {
    if (static_cast<std::size_t>(kRoleSplits[i].role) != i) return false;
  }
  return std::size(kRoleSplits) == kRoles;
}
static_assert(all_roles_are_split(), "every role has one row, in the order of the roles");

[[nodiscard]] constexpr Split split_of(Role role) noexcept { return kRoleSplits[static_cast<std::size_t>(role)].split; }

// Returns whether a divided product of this role is whole at every rank as soon as it is computed. (Experts' products are gathered later.)
[[nodiscard]] constexpr bool is_gathered_behind(Role role) noexcept {
  const Split split = split_of(role);
  return split == Split::by_token || split == Split::by_output || split == Split::of_heads || split == Split::of_columns;
}

}  // namespace tessera::detail
