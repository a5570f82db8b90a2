// K-EXAONE (LG AI Research 2026): three of four layers have a sliding window, and only these have rope. The first layers have a dense
// FFN, the others experts and a shared expert. The experts' scores are sigmoids, with a bias for the choice.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kExaoneMoe = {
    .name = "exaone-moe",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_experts(kLlamaTensors).required(Role::attn_q_norm, Role::attn_k_norm).optional(Role::choice_bias),
    .windows = {.period = 4, .rope = WindowedRope::alone},
    .experts = {.some = true, .routing = RoutingKind::sigmoid},
};

}  // namespace tessera::arch
