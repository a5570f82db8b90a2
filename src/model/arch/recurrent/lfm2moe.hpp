// LFM2 with experts (Liquid AI 2025): the first layers have a dense FFN, the others experts. The experts' scores are sigmoids,
// renormalised. Some files have a bias for the choice.
#pragma once

#include "model/arch/recurrent/lfm2.hpp"

namespace tessera::arch {

inline constexpr Architecture kLfm2Moe = [] {
  Architecture table = kLfm2;
  table.name = "lfm2moe";
  table.tensors = with_experts(kLfm2.tensors).optional(Role::choice_bias);
  table.experts = {.some = true, .routing = RoutingKind::sigmoid};
  return table;
}();

}  // namespace tessera::arch
