// Qwen3-Next (Qwen Team 2025): like Qwen3.5 with experts, with two differences in the delta nets. First, one matrix computes both the
// betas and the steps (from which each head's decay is computed; files call them alpha), group by group. Second, the value heads of a
// group are consecutive, as in the original model.
#pragma once

#include "model/arch/recurrent/qwen35moe.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3Next = [] {
  Architecture table = kQwen35Moe;
  table.name = "qwen3next";
  table.tensors = kQwen35Moe.tensors.without(Role::state_steps, Role::state_betas).required(Role::state_steps_betas);
  table.recurrent.group_order = StateGroups::blocks;
  return table;
}();

}  // namespace tessera::arch
