// Mistral 7B (Jiang et al. 2023, section 2: sliding window attention), in files that name the architecture "mistral". Most files of the
// model name it "llama" (llama.hpp). Apart from the name the two tables are equal.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kMistral = [] {
  Architecture table = kLlama;
  table.name = "mistral";
  return table;
}();

}  // namespace tessera::arch
