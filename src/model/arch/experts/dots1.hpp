// dots.llm1 (rednote-hilab 2025): the attention of Qwen3 and the experts of DeepSeek-V3. The first layers have a dense FFN, the other
// layers experts and a shared expert. The experts' scores are sigmoids, with a bias for the choice.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kDots1 = {
    .name = "dots1",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_experts(with_attention_biases(kLlamaTensors))
                   .required(Role::attn_q_norm, Role::attn_k_norm)
                   .optional(Role::choice_bias),
    .experts = {.some = true, .routing = RoutingKind::sigmoid},
};

}  // namespace tessera::arch
