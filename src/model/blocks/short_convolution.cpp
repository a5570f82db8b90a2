#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace short_convolution {

Status remember(const Pass& pass, const Layer& layer, const Input& input) {
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

Status look_back(const Pass& pass, const Layer& layer) {
  TESSERA_TRY_STATUS(pass.backend.multiply(Act::v, Act::q));
  return rejoin(pass, {.weight = *layer.weights.matrix(Role::short_out), .in = Act::q, .scale = layer.spec.residual_scale});
}

std::span<const Act> leaves(const LayerSpec&) {
  static constexpr std::array kLeaves{Act::q, Act::v};
  return kLeaves;
}

void make_room(const ModelSpec& model, const LayerSpec&, backend::WorkspaceShape& shape) {
  for (const Act act : {Act::q, Act::k, Act::v}) widen(shape, act, model.d_model);
}

}  // namespace short_convolution
}  // namespace

constexpr MixerBlock kShortConvolution{short_convolution::remember, short_convolution::look_back, short_convolution::leaves,
                                        short_convolution::make_room};

}  // namespace tessera::detail
