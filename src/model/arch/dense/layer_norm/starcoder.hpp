// StarCoder and SantaCoder (Li et al. 2023): GPT-2 whose query heads share one key head and one value head.
#pragma once

#include "model/arch/dense/layer_norm/gpt2.hpp"

namespace tessera::arch {

inline constexpr Architecture kStarCoder = [] {
  Architecture table = kGpt2;
  table.name = "starcoder";
  return table;
}();

}  // namespace tessera::arch
