// Falcon 7B (Almazrouei et al. 2023): multi-query attention and FFN in parallel behind one LayerNorm, products without biases, GELU in its
// erf form, rope pairs (i, i + d/2). attn_norm_2 is Falcon 40B's separate norm for attention. The converter regroups the fused matrix
// into Q rows, K rows, V rows.
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
