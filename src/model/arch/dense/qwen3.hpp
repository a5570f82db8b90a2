// Qwen3 (Yang et al. 2025): Llama with an RMSNorm over each query and key head before rope, a head_dim that
// does not follow from d_model (attention.key_length), and rope pairs (i, i + d/2).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3 = {
    .name = "qwen3",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.required(Role::attn_q_norm, Role::attn_k_norm)
                   .optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias, Role::attn_output_bias),
};

}  // namespace tessera::arch
