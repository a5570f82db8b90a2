// gpt-oss (OpenAI 2025): experts with a clamped SwiGLU. The experts with the largest logits are chosen, and weighted by the softmax over
// the chosen experts. There are biases everywhere, a sink logit in each head's softmax, and a sliding window in every other layer. The
// ends of YaRN's ramp are not rounded to whole pairs. In the original the rows of gate and up alternate; the converter separates them.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGptOss = {
    .name = "gpt-oss",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::clamped_swiglu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_experts(with_attention_biases(kLlamaTensors))
                   .without(Role::ffn_norm, Role::rope_freqs)
                   .required(Role::ffn_norm_late, Role::attn_sinks, Role::router_bias, Role::experts_gate_bias,
                             Role::experts_up_bias, Role::experts_down_bias),
    .windows = {.period = 2},
    .experts = {.some = true, .routing = RoutingKind::chosen_softmax, .renormalise = Renormalise::no},
    .sinks = Sinks::one_a_head,
    .yarn_ramp = YarnRamp::exact,
};

}  // namespace tessera::arch
