// OLMo 2 and 3 (Team OLMo 2024, 2025): norms after attention and after the FFN instead of before them. One norm covers all query heads of
// a token, and one all its key heads. In OLMo 3 three of four layers have a sliding window; rope scaling does not apply to layers with a
// window.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kOlmo2 = {
    .name = "olmo2",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kPostNormTensors.required(Role::attn_q_norm, Role::attn_k_norm),
    .windows = {.period = 4, .rope = WindowedRope::unscaled},
    .head_norms = HeadNorms::together,
};

}  // namespace tessera::arch
