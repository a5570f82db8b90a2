// Llama-Embed-Nemotron (NVIDIA 2025): like Llama, but each row sees the whole text.
#pragma once

#include "model/arch/encoders/eurobert.hpp"

namespace tessera::arch {

inline constexpr Architecture kLlamaEmbed = [] {
  Architecture table = kEuroBert;
  table.name = "llama-embed";
  return table;
}();

}  // namespace tessera::arch
