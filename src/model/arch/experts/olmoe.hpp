// OLMoE (Muennighoff et al. 2024): the FFNs are experts, weighted by the softmax over all experts (not renormalised). One norm covers all
// query heads of a token, and one all its key heads.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kOlmoe = {
    .name = "olmoe",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_experts(kLlamaTensors).required(Role::attn_q_norm, Role::attn_k_norm),
    .head_norms = HeadNorms::together,
    .experts = {.some = true, .renormalise = Renormalise::no},
};

}  // namespace tessera::arch
