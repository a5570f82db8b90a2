// Llama 1 to 3 (Touvron et al. 2023; Dubey et al. 2024), and most files of Mistral 7B (Jiang et al. 2023), which differ only in the key
// llama.attention.sliding_window. The converter permutes the rows of Q and K, so that rope pairs are (2i, 2i+1). The factors of Llama
// 3.1's long-context rope are the tensor rope_freqs.weight.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kLlama = {
    .name = "llama",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::interleaved,
    .tensors = with_experts(kLlamaTensors)
                   .optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias, Role::attn_output_bias,
                             Role::ffn_gate_bias, Role::ffn_up_bias, Role::ffn_down_bias),
    .experts = {.some = true},  // Mixtral (Jiang et al. 2024): softmax over all experts, renormalised
};

}  // namespace tessera::arch
