// GLM-4-0414 (Z.ai 2025): norms before and after attention and FFN, one matrix for gate and up, rope pairs (2i, 2i+1) in half of each
// head, and biases of Q, K and V.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGlm4 = {
    .name = "glm4",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::interleaved,
    .tensors = with_attention_biases(kLlamaTensors)
                   .without(Role::ffn_gate, Role::ffn_up, Role::rope_freqs)
                   .required(Role::ffn_gate_up, Role::attn_post_norm, Role::ffn_post_norm),
};

}  // namespace tessera::arch
