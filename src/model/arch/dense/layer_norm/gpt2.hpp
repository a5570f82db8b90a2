// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, biases everywhere, one fused QKV matrix, GELU in its tanh form. The converter
// transposes the weights.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGpt2 = {
    .name = "gpt2",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_tanh,
    .positions = Positions::learned,
    .rope_pairs = RopePairs::interleaved,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::position_embd, Role::output_norm, Role::output_norm_bias,
                             Role::attn_norm, Role::attn_norm_bias, Role::attn_qkv, Role::attn_qkv_bias,
                             Role::attn_output, Role::attn_output_bias, Role::ffn_norm, Role::ffn_norm_bias,
                             Role::ffn_up, Role::ffn_up_bias, Role::ffn_down, Role::ffn_down_bias)
                   .optional(Role::output),
};

}  // namespace tessera::arch
