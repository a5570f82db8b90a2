// Seed-OSS (ByteDance 2025): like Llama, with biases of Q, K and V and rope pairs (i, i + d/2). The norm before the FFN is called
// post_attention_norm in the file.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kSeedOss = {
    .name = "seed_oss",
    .norm = NormKind::rms,
    .wiring = Wiring::sequential,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::halves,
    .tensors = with_attention_biases(kLlamaTensors).without(Role::ffn_norm).required(Role::ffn_norm_late),
};

}  // namespace tessera::arch
