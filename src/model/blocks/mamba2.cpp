#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/blocks/recurrent.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace mamba2 {

Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  const Weights& w = layer.weights;
  const std::array parts{
      backend::LinearPart{w.matrix(Role::state_mixed), nullptr, Act::q},
      backend::LinearPart{w.matrix(Role::state_gate), nullptr, Act::v},
      backend::LinearPart{w.matrix(Role::state_steps), nullptr, Act::k},
  };
  TESSERA_TRY_STATUS(products(pass, input, parts));
  TESSERA_TRY_STATUS(convolve_mixed(pass, layer, Act::q));
  return pass.backend.scan(recurrence_of(pass, layer, Role::scan_rate), Act::q, Act::k, Act::gate, Act::attn);
}

// Mamba-2 multiplies by the gate before the norm. (A delta net does so after the norm.)
Status look_back(const Pass& pass, const Layer& layer) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  TESSERA_TRY_STATUS(b.activate_gated(ActivationKind::silu, Act::v, Act::attn));
  TESSERA_TRY_STATUS(b.group_norm(*w.vector(Role::scan_norm), pass.model.spec.norm_eps, layer.spec.state_groups, Act::attn));
  return rejoin(pass, {.weight = *w.matrix(Role::state_out), .in = Act::attn, .scale = layer.spec.residual_scale});
}

std::span<const Act> leaves(const LayerSpec&) {
  static constexpr std::array kLeaves{Act::attn, Act::v};
  return kLeaves;
}

}  // namespace mamba2
}  // namespace

constexpr MixerBlock kMamba2{mamba2::remember, mamba2::look_back, mamba2::leaves, make_room_for_recurrence};

}  // namespace tessera::detail
