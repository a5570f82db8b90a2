// Jina Embeddings 3 (Sturua et al. 2024): BERT with rope instead of learned positions.
#pragma once

#include "model/arch/encoders/bert.hpp"

namespace tessera::arch {

inline constexpr Architecture kJinaBert3 = [] {
  Architecture table = kBert;
  table.name = "jina-bert-v3";
  table.positions = Positions::rope;
  table.rope_pairs = RopePairs::halves;
  table.tensors = kBert.tensors.without(Role::position_embd);
  return table;
}();

}  // namespace tessera::arch
