// Command R (Cohere 2024): attention and FFN run in parallel on one LayerNorm without a bias, and logits are multiplied by a factor from the
// settings. Command R+ is refused, because its norms of queries and keys have different weights for each head.
#pragma once

#include "model/architecture.hpp"

namespace tessera::arch {

inline constexpr Architecture kCommandR = {
    .name = "command-r",
    .norm = NormKind::layer,
    .wiring = Wiring::parallel,
    .ffn = Ffn::gated,
    .activation = ActivationKind::silu,
    .positions = Positions::rope,
    .rope_pairs = RopePairs::interleaved,
    .tensors = with_attention_biases(kLlamaTensors).without(Role::ffn_norm),
    .scales = Scales::logits,
};

}  // namespace tessera::arch
