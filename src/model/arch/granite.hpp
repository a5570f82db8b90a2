// Granite 3 and 4, dense (IBM 2024): Llama whose embeddings, scores, branches of the residual stream and logits are
// multiplied by numbers of the metadata; logits by 1 / logit_scale. Q and K rows were permuted as Llama's are.
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
