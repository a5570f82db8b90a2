// Granite 4 H (IBM 2025): like Granite, dense or with experts, but most layers are Mamba-2 instead of attention. Heads of attention have
// rope only if the file says so. The converter replaces Mamba-2's A_log by -exp(A_log).
#pragma once

#include "model/arch/experts/granitemoe.hpp"

namespace tessera::arch {

// Returns the table with the tensors of Mamba-2 added.
inline constexpr TensorTable with_mamba2(TensorTable table) noexcept {
  return table
      .required(Role::state_in, Role::state_conv, Role::state_step_bias, Role::scan_rate, Role::scan_skip, Role::scan_norm, Role::state_out)
      .optional(Role::state_conv_bias);
}

inline constexpr Architecture kGraniteHybrid = [] {
  Architecture table = kGraniteMoe;
  table.name = "granitehybrid";
  table.tensors = with_mamba2(kGraniteMoe.tensors);
  table.recurrent = {.layers = RecurrentLayers::no_kv_heads, .mixer = Mixer::mamba2};
  table.rotates_if_said = true;
  return table;
}();

}  // namespace tessera::arch
