// Falcon 7B (Almazrouei et al. 2023): multi-query attention and FFN run in parallel on one LayerNorm; no biases in products; GELU in its
// erf form; rope pairs (i, i + d/2). Falcon 40B has a separate norm for attention, attn_norm_2. The converter reorders the rows of the
// fused matrix into Q, K, V.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kFalcon = {
    .name = "falcon",
    .norm = NormKind::layer,
    .wiring = Wiring::parallel,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_erf,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::output_norm, Role::output_norm_bias, Role::attn_norm,
                             Role::attn_norm_bias, Role::attn_qkv, Role::attn_output, Role::ffn_up, Role::ffn_down)
                   .optional(Role::output, Role::attn_norm_2, Role::attn_norm_2_bias),
};

}  // namespace tessera::arch
