// Orion 14B (OrionStar 2024): Llama with LayerNorm, and rope pairs (i, i + d/2).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kOrion = {
    .name = "orion",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.without(Role::rope_freqs).required(Role::output_norm_bias, Role::attn_norm_bias, Role::ffn_norm_bias),
};

}  // namespace tessera::arch
