// Granite 3 and 4 with experts (IBM 2024): Granite, and experts whose weights are the softmax over those that a token
// takes, beside a shared one in some.
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
