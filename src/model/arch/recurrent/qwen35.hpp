// Qwen3.5 and 3.6, dense (Qwen Team 2026): of each four layers three are gated delta nets, and the fourth is attention with a gated
// output. The query matrix computes the values of that gate too. A quarter of each head rotates. Rope sections for images have no effect
// on text. MTP heads are attention layers.
//
// The converter orders value heads so that head h belongs to group h mod n_groups, adds 1 to the weights of all norms except the delta
// net's, and replaces A_log by -exp(A_log).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen35 = {
    .name = "qwen35",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_mtp_heads(kLlamaTensors)
                   .without(Role::ffn_norm, Role::attn_q, Role::rope_freqs)
                   .required(Role::ffn_norm_late, Role::attn_q_gated, Role::attn_q_norm, Role::attn_k_norm, Role::state_mixed,
                             Role::state_gate, Role::state_steps, Role::state_betas, Role::state_conv, Role::state_step_bias,
                             Role::delta_rate, Role::delta_norm, Role::state_out),
    .recurrent = {.layers = RecurrentLayers::interval, .mixer = Mixer::delta_net, .group_order = StateGroups::cyclic},
    .output_gate = OutputGate::sigmoid,
    .guesses_further = true,
};

}  // namespace tessera::arch
