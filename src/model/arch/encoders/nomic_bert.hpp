// Nomic BERT (Nussbaum et al. 2024): BERT with rope instead of learned positions, a gated FFN with SiLU, and no biases except in norms.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kNomicBert = {
    .name = "nomic-bert",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::embd_norm, Role::embd_norm_bias, Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_output,
                             Role::attn_sum_norm, Role::attn_sum_norm_bias, Role::ffn_gate, Role::ffn_up, Role::ffn_down, Role::ffn_sum_norm,
                             Role::ffn_sum_norm_bias)
                   .optional(Role::segment_embd, Role::attn_qkv),
    .encodes = true,
};

}  // namespace tessera::arch
