// GLM-4.5 to 4.7 (Z.ai 2025): the first layers have a dense FFN, the others experts and a shared expert. The experts' scores are
// sigmoids, with a bias for the choice. Half of each head rotates. The larger models have norms over queries and keys. The layers of MTP
// heads have experts too.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGlm4Moe = {
    .name = "glm4moe",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_mtp_heads(with_experts(with_attention_biases(kLlamaTensors)))
                   .without(Role::ffn_norm, Role::rope_freqs)
                   .required(Role::ffn_norm_late)
                   .optional(Role::attn_q_norm, Role::attn_k_norm, Role::choice_bias),
    .experts = {.some = true, .routing = RoutingKind::sigmoid},
    .guesses_further = true,
};

}  // namespace tessera::arch
