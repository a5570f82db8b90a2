#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

Status short_convolution_remember(const Pass& pass, const Layer& layer, const Input& input) {
  const Weights& w = layer.weights;
  const std::array parts{
      backend::LinearPart{w.matrix(Role::short_mixed), nullptr, Act::q},
      backend::LinearPart{w.matrix(Role::short_before), nullptr, Act::k},
      backend::LinearPart{w.matrix(Role::short_behind), nullptr, Act::v},
  };
  TESSERA_TRY_STATUS(products(pass, input, parts));
  TESSERA_TRY_STATUS(pass.backend.multiply(Act::k, Act::q));
  return pass.backend.convolve({.layer = layer.index, .weight = w.vector(Role::short_conv)}, Act::q);
}

Status short_convolution_look_back(const Pass& pass, const Layer& layer) {
  TESSERA_TRY_STATUS(pass.backend.multiply(Act::v, Act::q));
  return rejoin(pass, {.weight = *layer.weights.matrix(Role::short_out), .in = Act::q, .scale = layer.spec.residual_scale});
}

}  // namespace tessera::detail
