// Gemma 3 (Gemma Team 2025), text: RMSNorms before and after attention and FFN, and over each query and key head; GELU in its tanh form
// in the gate; embeddings times sqrt(d_model). Five of six layers have a sliding window and a rope base of 10000; the sixth sees
// everything. The converter adds 1 to the norms' weights. The 27B model (62 layers) scales scores by 1 / sqrt(d_model / n_heads).
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGemma3 = {
    .name = "gemma3",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::gelu_tanh,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.required(Role::attn_q_norm, Role::attn_k_norm, Role::attn_post_norm, Role::ffn_post_norm),
    .scales = Scales::root_of_width,
    .windows = {.period = 6, .rope = WindowedRope::unscaled, .theta = 10000.0},
    .layers_scaled_by_width = 62,
};

}  // namespace tessera::arch
