// GPT-NeoX 20B (Black et al. 2022) and Pythia (Biderman et al. 2023): attention and FFN run in parallel, each after its own LayerNorm;
// biases everywhere; GELU; rope pairs (i, i + d/2) in a part of each head. The converter reorders the rows of the fused matrix into Q, K,
// V. In a few models the FFN follows attention instead: their files set use_parallel_residual to false.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGptNeoX = {
    .name = "gptneox",
    .norm = NormKind::layer,
    .wiring = Wiring::parallel,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_erf,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::output_norm, Role::output_norm_bias, Role::attn_norm, Role::attn_norm_bias,
                             Role::attn_qkv, Role::attn_output, Role::ffn_norm, Role::ffn_norm_bias, Role::ffn_up, Role::ffn_up_bias,
                             Role::ffn_down, Role::ffn_down_bias)
                   .optional(Role::output, Role::attn_qkv_bias, Role::attn_output_bias),
};

}  // namespace tessera::arch
