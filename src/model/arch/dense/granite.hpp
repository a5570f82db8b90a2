// Granite 3 and 4, dense (IBM 2024): like Llama, with factors from the settings for the embeddings, the scores, the branches of the
// residual stream and the logits (1 / logit_scale). The converter permutes the rows of Q and K as for Llama.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kGranite = [] {
  Architecture table = kLlama;
  table.name = "granite";
  table.scales = Scales::in_metadata;
  return table;
}();

}  // namespace tessera::arch
