// Qwen3-Next (Qwen Team 2025): Qwen3.5 with experts, but that one matrix gives the betas and the steps of a delta net, group by
// group, and that heads have their group's keys in blocks, as the model was trained.
#pragma once

#include "model/arch/qwen35moe.hpp"

namespace tessera::arch {

inline constexpr Architecture kQwen3Next = [] {
  Architecture table = kQwen35Moe;
  table.name = "qwen3next";
  table.tensors = kQwen35Moe.tensors.without(Role::state_steps, Role::state_betas).required(Role::state_steps_betas);
  table.recurrent.group_order = StateGroups::blocks;
  return table;
}();

}  // namespace tessera::arch
