// EXAONE 3 and 3.5 (LG AI Research 2024): Llama with rope pairs (i, i + d/2).
#pragma once

#include "model/arch/dense/llama.hpp"

namespace tessera::arch {

inline constexpr Architecture kExaone = [] {
  Architecture table = kLlama;
  table.name = "exaone";
  table.experts = {};
  table.rope_pairs = RopePairs::halves;
  table.tensors = kLlamaTensors;
  return table;
}();

}  // namespace tessera::arch
