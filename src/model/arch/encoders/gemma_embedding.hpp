// EmbeddingGemma (Schechter Vera et al. 2025): Gemma 3 as an encoder. A row's window extends to both sides of the row, and two matrix
// products after the final norm make the row's embedding.
#pragma once

#include "model/arch/gemma/gemma3.hpp"

namespace tessera::arch {

inline constexpr Architecture kGemmaEmbedding = [] {
  Architecture table = kGemma3;
  table.name = "gemma-embedding";
  table.tensors = table.tensors.optional(Role::embd_inner, Role::embd_outer);
  table.encodes = true;
  return table;
}();

}  // namespace tessera::arch
