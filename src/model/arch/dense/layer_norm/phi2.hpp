// Phi 1, 1.5 and 2 (Gunasekar et al. 2023; Microsoft 2023): attention and FFN run in parallel on one LayerNorm; biases everywhere,
// also for the logits; GELU in its tanh form; rope pairs (i, i + d/2) in a part of each head.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kPhi2 = {
    .name = "phi2",
    .norm = NormKind::layer,
    .wiring = Wiring::parallel,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_tanh,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::output_norm, Role::output_norm_bias, Role::attn_norm, Role::attn_norm_bias,
                             Role::attn_q, Role::attn_q_bias, Role::attn_k, Role::attn_k_bias, Role::attn_v, Role::attn_v_bias,
                             Role::attn_output, Role::attn_output_bias, Role::ffn_up, Role::ffn_up_bias, Role::ffn_down, Role::ffn_down_bias)
                   .optional(Role::output, Role::output_bias, Role::attn_qkv, Role::attn_qkv_bias),
};

}  // namespace tessera::arch
