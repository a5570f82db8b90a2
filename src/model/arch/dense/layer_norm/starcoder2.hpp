// StarCoder 2 (Lozhkov et al. 2024): LayerNorm, biases everywhere, a plain FFN with GELU in its tanh form, rope pairs
// (i, i + d/2).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kStarCoder2 = {
    .name = "starcoder2",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_tanh,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_attention_biases(kLlamaTensors)
                   .without(Role::ffn_gate)
                   .required(Role::output_norm_bias, Role::attn_norm_bias, Role::ffn_norm_bias)
                   .optional(Role::ffn_up_bias, Role::ffn_down_bias),
};

}  // namespace tessera::arch
