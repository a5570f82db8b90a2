// Mistral 7B (Jiang et al. 2023, section 2: sliding window attention) under its own name. Most files have the architecture "llama"
// (llama.hpp); the tables differ only in the name.
#pragma once

#include "model/arch/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kMistral = [] {
  Architecture table = kLlama;
  table.name = "mistral";
  return table;
}();

}  // namespace tessera::arch
