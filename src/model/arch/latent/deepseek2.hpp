// Models with latent attention (DeepSeek-AI 2024): DeepSeek-V2 and -Lite, V3, R1, Kimi K2, GLM-4.7-Flash and Mistral Large 3. The first
// layers have a dense FFN, the others experts and shared experts. In V2 the experts' scores are a softmax, and the score of a group of
// experts is that of its best expert. In V3 the scores are sigmoids, with a bias for the choice. Lite models compute queries with one
// matrix instead of two. The converter splits the matrix that expands the latent into two: one for keys (transposed within each head) and
// one for values.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kDeepSeek2 = {
    .name = "deepseek2",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::interleaved,
    .tensors = with_mtp_heads(with_experts(kLlamaTensors))
                   .without(Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_output, Role::rope_freqs)
                   .required(Role::latent_q, Role::latent_q_a, Role::latent_q_a_norm, Role::latent_q_b, Role::latent_kv_a,
                             Role::latent_kv_norm, Role::latent_k_b, Role::latent_v_b, Role::latent_output)
                   .optional(Role::choice_bias),
    .experts = {.some = true, .routing = RoutingKind::softmax, .renormalise = Renormalise::no,
                .softmax_groups = GroupScore::best},
    .has_temperature = true,
    .is_latent = true,
    .guesses_further = true,
};

}  // namespace tessera::arch
