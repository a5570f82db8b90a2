// ModernBERT (Warner et al. 2024): an encoder whose norms come before attention and FFN, with rope and a gated FFN with GELU. Of each
// three layers the first sees the whole text; the other two see a window of 64 tokens to each side, with another rope base. The first
// layer has no norm before attention: the norm of the embeddings serves as this norm.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kModernBert = {
    .name = "modern-bert",
    .norm = NormKind::layer,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::gelu_erf,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = TensorTable{}
                   .required(Role::token_embd, Role::embd_norm, Role::output_norm, Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_output,
                             Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
                   .optional(Role::attn_norm, Role::attn_qkv, Role::ffn_gate_up, Role::head_in, Role::head_in_bias, Role::head_norm,
                             Role::head_norm_bias, Role::head_out, Role::head_out_bias),
    .windows = {.period = 3, .rope = WindowedRope::unscaled, .theta = 10000.0, .first_sees_all = true},
    .encodes = true,
    .head_activation = ActivationKind::gelu_erf,
};

}  // namespace tessera::arch
