// Functions that recurrent mixers share: a convolution of their input columns, and the description of the recurrence that follows.
#pragma once

#include "backend/recurrent_state.hpp"
#include "model/blocks/pass.hpp"

namespace tessera::detail {

// Convolves the columns of `x` and applies SiLU. The columns are q, k and v of a delta net, or x, B and C of Mamba-2.
inline Status convolve_mixed(const Pass& pass, const Layer& layer, backend::Act x) {
  const Weights& w = layer.weights;
  return pass.backend.convolve(
      {.layer = layer.index, .weight = w.vector(Role::state_conv), .bias = w.vector(Role::state_conv_bias), .silu = true}, x);
}

inline backend::Recurrence recurrence_of(const Pass& pass, const Layer& layer, Role rate) {
  const LayerSpec& spec = layer.spec;
  return {.layer = layer.index,
          .heads = spec.state_heads,
          .groups = spec.state_groups,
          .keys = spec.state_keys,
          .values = spec.state_values,
          .group_order = spec.group_order,
          .state_offset = backend::convolution_floats(spec.conv_width, extent::mixed(pass.model.spec, spec)),
          .rate = layer.weights.vector(rate),
          .step_bias = layer.weights.vector(Role::state_step_bias),
          .skip = layer.weights.vector(Role::scan_skip)};
}

// Makes the workspace large enough for a delta net or for Mamba-2.
inline void make_room_for_recurrence(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape) {
  widen(shape, backend::Act::q, extent::mixed(model, layer));
  for (const backend::Act act : {backend::Act::v, backend::Act::attn}) widen(shape, act, extent::all_values(model, layer));
  for (const backend::Act act : {backend::Act::k, backend::Act::gate}) widen(shape, act, layer.state_heads);
}

}  // namespace tessera::detail
