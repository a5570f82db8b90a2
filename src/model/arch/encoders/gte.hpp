// GTE, the multilingual and the English models of 2024 (Zhang et al. 2024): BERT with rope instead of learned positions, and a gated FFN
// with GELU. No GGUF files of these models are known; the name "gte" is this library's.
#pragma once

#include "model/arch/encoders/bert.hpp"

namespace tessera::arch {

inline constexpr Architecture kGte = [] {
  Architecture table = kBert;
  table.name = "gte";
  table.positions = Positions::rope;
  table.rope_pairs = RopePairs::halves;
  table.ffn = Ffn::gated;
  table.pooling = Pooling::cls;
  table.tensors = kBert.tensors.without(Role::position_embd, Role::ffn_up_bias).required(Role::ffn_gate);
  return table;
}();

}  // namespace tessera::arch
