// Hunyuan 0.5B to 7B, dense (Tencent 2025): like Llama, with rope pairs (i, i + d/2), and with an RMSNorm over each query and key head
// after rope. The original model scales its rope. The converter writes another rope base instead, so that files need no scaling.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kHunyuanDense = {
    .name = "hunyuan-dense",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_attention_biases(kLlamaTensors).required(Role::attn_q_norm, Role::attn_k_norm),
    .head_norm_place = HeadNormPlace::behind_rope,
};

}  // namespace tessera::arch
