// Nemotron 4 and Minitron (NVIDIA 2024): LayerNorm, a plain FFN with squared ReLU, and rope pairs (i, i + d/2) in a part of each head. In
// the original, a norm multiplies by its weight plus 1; the converter adds the 1 to the weights.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kNemotron = {
    .name = "nemotron",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::plain,
    .activation = ActivationKind::squared_relu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_attention_biases(kLlamaTensors)
                   .without(Role::ffn_gate, Role::rope_freqs)
                   .required(Role::output_norm_bias, Role::attn_norm_bias, Role::ffn_norm_bias)
                   .optional(Role::ffn_up_bias, Role::ffn_down_bias),
};

}  // namespace tessera::arch
