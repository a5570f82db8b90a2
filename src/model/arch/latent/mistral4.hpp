// Mistral Small 4 (Mistral AI 2026): latent attention and experts as in DeepSeek-V2, but the score of a group of experts is the sum of
// its two best experts' scores. Queries are multiplied by a factor that grows with their position. llama.cpp's converter does not write
// the rate of this growth. For a file without the rate, the table has the rate of the published models (the default of transformers).
#pragma once

#include "model/arch/latent/deepseek2.hpp"

namespace tessera::arch {

inline constexpr Architecture kMistral4 = [] {
  Architecture table = kDeepSeek2;
  table.name = "mistral4";
  table.temperature = 0.1;
  table.experts.softmax_groups = GroupScore::two_best;
  return table;
}();

}  // namespace tessera::arch
