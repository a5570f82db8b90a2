// Granite 3 and 4 with experts (IBM 2024): like Granite, with experts that are weighted by the softmax over the token's chosen experts.
// Some models have a shared expert.
#pragma once

#include "model/arch/dense/granite.hpp"

namespace tessera::arch {

inline constexpr Architecture kGraniteMoe = [] {
  Architecture table = kGranite;
  table.name = "granitemoe";
  table.tensors = with_experts(kGranite.tensors);
  table.experts = {.some = true, .routing = RoutingKind::chosen_softmax, .renormalise = Renormalise::no};
  return table;
}();

}  // namespace tessera::arch
