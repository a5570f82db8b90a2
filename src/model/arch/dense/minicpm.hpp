// MiniCPM 1 and 4 (OpenBMB 2024, 2025): Llama with factors for embeddings, branches and logits, like Granite.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kMiniCpm = [] {
  Architecture table = kLlama;
  table.name = "minicpm";
  table.experts = {};
  table.scales = Scales::in_metadata;
  table.tensors = kLlamaTensors.optional(Role::rope_factors_short, Role::rope_factors_long);
  return table;
}();

}  // namespace tessera::arch
