// BERT (Devlin et al. 2018) and related encoders, in which each row sees the whole text: learned positions and segments; a LayerNorm of the
// residual stream after each half of a layer (post-norm); biases; GELU. RoBERTa and XLM-R (Conneau et al. 2019) are the same with one
// segment or none.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

// Returns the table with the tensors of a score head added. A score head ranks pairs of texts or classifies texts. Most encoders have none.
inline constexpr TensorTable with_score_head(TensorTable table) noexcept {
  return table.optional(Role::head_in, Role::head_in_bias, Role::head_norm, Role::head_norm_bias, Role::head_out, Role::head_out_bias);
}

inline constexpr Architecture kBert = {
    .name = "bert",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::plain,
    .activation = ActivationKind::gelu_erf,
    .positions = Positions::learned,
    .rope_pairs = RopePairs::interleaved,
    .tensors = with_score_head(TensorTable{}
                                   .required(Role::token_embd, Role::position_embd, Role::embd_norm, Role::embd_norm_bias, Role::attn_q,
                                             Role::attn_q_bias, Role::attn_k, Role::attn_k_bias, Role::attn_v, Role::attn_v_bias,
                                             Role::attn_output, Role::attn_output_bias, Role::attn_sum_norm, Role::attn_sum_norm_bias,
                                             Role::ffn_up, Role::ffn_up_bias, Role::ffn_down, Role::ffn_down_bias, Role::ffn_sum_norm,
                                             Role::ffn_sum_norm_bias)
                                   .optional(Role::segment_embd, Role::attn_qkv, Role::attn_qkv_bias)),
    .encodes = true,
};

}  // namespace tessera::arch
