// Gemma 2 (Gemma Team 2024): Gemma with RMSNorms behind attention and FFN too, a softcap of the attention scores and one of
// the logits, and a sliding window in every other layer. The 27B model, of 46 layers, scales its scores by its width. Files
// of the first converters say nothing of softcaps and window.
#pragma once

#include "model/arch/gemma.hpp"

namespace tessera::arch {

inline constexpr Architecture kGemma2 = [] {
  Architecture table = kGemma;
  table.name = "gemma2";
  table.tensors = kGemma.tensors.required(Role::attn_post_norm, Role::ffn_post_norm);
  table.windows = {.period = 2, .length = 4096};
  table.layers_scaled_by_width = 46;
  table.softcaps = {.scores = 50.0, .logits = 30.0};
  return table;
}();

}  // namespace tessera::arch
