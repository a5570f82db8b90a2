// Qwen3-Next (Qwen Team 2025): like Qwen3.5 with experts, with two differences in the delta nets. One matrix computes the betas and the
// steps (the inputs of each head's decay, called alpha in files), group by group. The heads that share a group's keys are consecutive, as
// in training.
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
