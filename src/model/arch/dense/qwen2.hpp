// Qwen2 and Qwen2.5 (Yang et al. 2024): Llama with biases on Q, K and V, and rope pairs (i, i + d/2).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen2 = {
    .name = "qwen2",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.required(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias),
};

}  // namespace tessera::arch
