// What recurrent mixers have in common: a convolution of the mixed columns, and heads whose states follow it.
#pragma once

#include "backend/recurrent_state.hpp"
#include "model/blocks/pass.hpp"

namespace tessera::detail {

// The convolution of `x`, with SiLU behind it: q, k and v of a delta net; x, B and C of Mamba-2.
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

}  // namespace tessera::detail
