// Gemma (Gemma Team 2024): Llama with GELU in its tanh form in the gate, embeddings times sqrt(d_model), and rope pairs (i, i + d/2). The
// converter adds 1 to the norms' weights.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kGemma = {
    .name = "gemma",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::gelu_tanh,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = kLlamaTensors,
    .scales = Scales::root_of_width,
};

}  // namespace tessera::arch
