// Gemma 2 (Gemma Team 2024): like Gemma, with RMSNorms after attention and FFN too, softcaps of attention scores and of logits, and a
// sliding window in every other layer. The 27B model (46 layers) scales scores by 1 / sqrt(d_model / n_heads). Files of the first
// converters do not state the softcaps and the window, so the table has their values.
#pragma once

#include "model/arch/gemma/gemma.hpp"

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
