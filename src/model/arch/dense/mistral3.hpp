// Mistral Small 3.2, Ministral 3 and Devstral 2 (Mistral AI 2025): like Llama, with YaRN. If the file says so, queries are multiplied by
// a factor that grows with their position. The converter permutes the rows of Q and K as for Llama.
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kMistral3 = [] {
  Architecture table = kLlama;
  table.name = "mistral3";
  table.has_temperature = true;
  return table;
}();

}  // namespace tessera::arch
