// Granite 3 and 4 with experts (IBM 2024): Granite with experts, weighted by the softmax over a token's experts; some models have a shared
// expert.
#pragma once

#include "model/arch/granite.hpp"

namespace tessera::arch {

inline constexpr Architecture kGraniteMoe = [] {
  Architecture table = kGranite;
  table.name = "granitemoe";
  table.tensors = with_experts(kGranite.tensors);
  table.experts = {.some = true, .routing = RoutingKind::chosen_softmax, .renormalise = Renormalise::no};
  return table;
}();

}  // namespace tessera::arch
