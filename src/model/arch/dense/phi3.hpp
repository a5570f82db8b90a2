// Phi-3, 3.5 and 4 (Microsoft 2024): like Llama, with one matrix for Q, K and V, one for gate and up, and rope pairs (i, i + d/2) in a
// part of each head. Models with a long context have LongRoPE's factors (Ding et al. 2024).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kPhi3 = {
    .name = "phi3",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.without(Role::attn_q, Role::attn_k, Role::attn_v, Role::ffn_gate, Role::ffn_up, Role::rope_freqs)
                   .required(Role::attn_qkv, Role::ffn_gate_up)
                   .optional(Role::rope_factors_short, Role::rope_factors_long),
};

}  // namespace tessera::arch
