// LFM2 (Liquid AI 2025): most layers are short convolutions; the other layers are attention with norms over queries and keys. The final
// norm is called token_embd_norm in the file, as if it belonged to the embedding.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kLfm2 = {
    .name = "lfm2",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors.without(Role::output_norm, Role::rope_freqs)
                   .required(Role::output_norm_early, Role::attn_q_norm, Role::attn_k_norm, Role::short_in, Role::short_conv, Role::short_out),
    .recurrent = {.layers = RecurrentLayers::no_kv_heads, .mixer = Mixer::short_convolution},
};

}  // namespace tessera::arch
