// Granite 3 and 4, dense (IBM 2024): Llama with factors from the settings for embeddings, scores, branches of the residual stream and
// logits (1 / logit_scale). The converter permutes Q and K rows as Llama's.
#pragma once

#include "model/arch/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kGranite = [] {
  Architecture table = kLlama;
  table.name = "granite";
  table.scales = Scales::in_metadata;
  return table;
}();

}  // namespace tessera::arch
