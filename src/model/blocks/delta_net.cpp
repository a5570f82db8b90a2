#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/blocks/recurrent.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace delta_net {

Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  const Weights& w = layer.weights;
  const std::array parts{
      backend::LinearPart{w.matrix(Role::state_mixed), nullptr, Act::q},
      backend::LinearPart{w.matrix(Role::state_gate), nullptr, Act::v},
      backend::LinearPart{w.matrix(Role::state_betas), nullptr, Act::k},
      backend::LinearPart{w.matrix(Role::state_steps), nullptr, Act::gate},
  };
  TESSERA_TRY_STATUS(products(pass, input, parts));
  TESSERA_TRY_STATUS(convolve_mixed(pass, layer, Act::q));
  return pass.backend.delta_rule(recurrence_of(pass, layer, Role::delta_rate), Act::q, Act::gate, Act::k, Act::attn);
}

Status look_back(const Pass& pass, const Layer& layer) {
  const Weights& w = layer.weights;
  TESSERA_TRY_STATUS(pass.backend.head_norm(*w.vector(Role::delta_norm), pass.model.spec.norm_eps, layer.spec.state_heads, Act::attn));
  return rejoin(pass, {.weight = *w.matrix(Role::state_out),
                       .activated = {.kind = ActivationKind::silu, .gate = Act::v, .up = Act::attn},
                       .scale = layer.spec.residual_scale});
}

std::span<const Act> leaves(const LayerSpec&) {
  static constexpr std::array kLeaves{Act::attn, Act::v};
  return kLeaves;
}

}  // namespace delta_net
}  // namespace

constexpr MixerBlock kDeltaNet{delta_net::remember, delta_net::look_back, delta_net::leaves, make_room_for_recurrence};

}  // namespace tessera::detail
