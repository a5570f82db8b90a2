// ERNIE 4.5 with experts (Baidu 2025): like ERNIE 4.5, but only the first layers have a dense FFN; the other layers have experts and a
// shared expert. The experts are weighted by the softmax over all experts, renormalised. There is a bias for the choice.
#pragma once

#include "model/arch/dense/ernie4_5.hpp"

namespace tessera::arch {

inline constexpr Architecture kErnie45Moe = [] {
  Architecture table = kErnie45;
  table.name = "ernie4_5-moe";
  table.tensors = with_experts(kErnie45.tensors).optional(Role::choice_bias);
  table.experts = {.some = true};
  return table;
}();

}  // namespace tessera::arch
