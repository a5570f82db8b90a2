// Nemotron-H and Nemotron Nano 2 (NVIDIA 2025): each layer is a norm and one of three blocks only: Mamba-2, attention without positions,
// or an FFN with squared ReLU. The converter replaces Mamba-2's A_log by -exp(A_log).
#pragma once

#include "model/arch/recurrent/granitehybrid.hpp"

namespace tessera::arch {

inline constexpr Architecture kNemotronH = {
    .name = "nemotron_h",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::plain,
    .activation = ActivationKind::squared_relu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_mamba2(with_attention_biases(kLlamaTensors))
                   .without(Role::ffn_norm, Role::ffn_gate, Role::rope_freqs)
                   .optional(Role::ffn_up_bias, Role::ffn_down_bias),
    .unrotated_period = 1,
    .recurrent = {.layers = RecurrentLayers::neither_kv_heads_nor_feed, .mixer = Mixer::mamba2},
};

}  // namespace tessera::arch
