// Mistral Small 4 (Mistral AI 2026): DeepSeek-V2's latent attention and experts; queries grow with their position, by the rate of the
// published models and of transformers' default where the file says none: llama.cpp's converter does not write it. Groups of experts
// are judged by their two best.
#pragma once

#include "model/arch/deepseek2.hpp"

namespace tessera::arch {

inline constexpr Architecture kMistral4 = [] {
  Architecture table = kDeepSeek2;
  table.name = "mistral4";
  table.temperature = 0.1;
  table.experts.softmax_groups = GroupScore::two_best;
  return table;
}();

}  // namespace tessera::arch
