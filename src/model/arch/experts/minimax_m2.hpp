// MiniMax-M2 (MiniMax 2025): experts in every layer. The experts' scores are sigmoids, renormalised, with a bias for the choice. One norm
// covers all query heads of a token, and one all its key heads. Half of each head rotates.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kMiniMaxM2 = {
    .name = "minimax-m2",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_experts(kLlamaTensors)
                   .without(Role::rope_freqs)
                   .required(Role::attn_q_norm, Role::attn_k_norm, Role::choice_bias),
    .head_norms = HeadNorms::together,
    .experts = {.some = true, .routing = RoutingKind::sigmoid},
};

}  // namespace tessera::arch
