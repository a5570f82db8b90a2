// OLMo 2 and 3 (Team OLMo 2024, 2025): norms behind attention and FFN and not before them, and norms over all queries and over all keys of
// a token. In OLMo 3 three of four layers have a sliding window and positions that are never scaled.
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
