// StableLM 3B and 2 1.6B (Stability AI 2023, 2024): LayerNorm, a gated FFN, and rope pairs (i, i + d/2) in a quarter of each head. Some
// models have biases of Q, K and V. Files of StableLM 2 12B have no norm before the FFN and are refused.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kStableLm = {
    .name = "stablelm",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.without(Role::rope_freqs)
                   .required(Role::output_norm_bias, Role::attn_norm_bias, Role::ffn_norm_bias)
                   .optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias),
};

}  // namespace tessera::arch
