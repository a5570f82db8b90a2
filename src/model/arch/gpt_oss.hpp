// gpt-oss (OpenAI 2025): experts of clamped SwiGLU, chosen by their logits and weighted by the softmax over the chosen ones; biases
// everywhere; a sink in each head's softmax; a sliding window in every other layer; YaRN whose ramp is not rounded to whole pairs. The
// converter separates the rows of gate and up, which alternate in the original.
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
