// EXAONE 4 (LG AI Research 2025): norms after attention and after the FFN instead of before them, and a norm over each query and key
// head. In the 32B model three of four layers have a sliding window, and the fourth sees everything and has no rope.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kExaone4 = {
    .name = "exaone4",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kPostNormTensors.required(Role::attn_q_norm, Role::attn_k_norm),
    .windows = {.period = 4, .rope = WindowedRope::alone},
};

}  // namespace tessera::arch
