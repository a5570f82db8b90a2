#include <algorithm>
#include <array>
#include <span>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

backend::Experts experts_of(const Layer& layer) {
  const Weights& w = layer.weights;
  const LayerSpec& spec = layer.spec;
  return {.gate = w.matrix(Role::experts_gate),
          .up = w.matrix(Role::experts_up),
          .down = w.matrix(Role::experts_down),
          .gate_bias = w.vector(Role::experts_gate_bias),
          .up_bias = w.vector(Role::experts_up_bias),
          .down_bias = w.vector(Role::experts_down_bias),
          .activation = spec.activation,
          .routing = {.kind = spec.routing,
                      .n_used = spec.n_used,
                      .n_groups = spec.n_groups,
                      .n_used_groups = spec.n_used_groups,
                      .group_score = spec.group_score,
                      .bias = w.vector(Role::choice_bias),
                      .scales = w.vector(Role::experts_scale),
                      .renormalises = spec.renormalise == Renormalise::yes,
                      .scale = spec.expert_scale}};
}

void make_room_for_experts(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape) {
  widen(shape, Act::router, layer.n_experts);
  for (const Act act : {Act::up, Act::gate}) widen(shape, act, std::max(layer.shared_dim, layer.expert_width));
  shape.n_experts = std::max(shape.n_experts, layer.n_experts);
  shape.used_experts = std::max(shape.used_experts, layer.n_used);
  shape.expert_inputs = std::max(shape.expert_inputs, extent::expert_width(model, layer));
  shape.expert_dim = std::max<std::uint64_t>(shape.expert_dim, layer.ffn_dim);
}

namespace {
namespace expert {

Status run(const Pass& pass, const Layer& layer, const Input& input) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  const LayerSpec& spec = layer.spec;
  if (input.norm) TESSERA_TRY_STATUS(b.norm(*input.norm, Act::x, input.act));
  TESSERA_TRY_STATUS(b.linear_bias(*w.matrix(Role::router), w.vector(Role::router_bias), input.act, Act::router));
  if (spec.expert_width == 0) {
    TESSERA_TRY_STATUS(b.experts(experts_of(layer), input.act, Act::router, Act::linear));
  } else {
    TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::experts_in), input.act, Act::up));
    TESSERA_TRY_STATUS(b.experts(experts_of(layer), Act::up, Act::router, Act::gate));
    TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::experts_out), Act::gate, Act::linear));
  }
  if (spec.shared_dim != 0) {
    // Compute the shared expert, with the result in Act::h2. No layer with a shared expert uses Act::h2 for anything else. (Layers whose
    // attention and FFN run in parallel do, but they have no experts.)
    const std::array parts{backend::LinearPart{w.matrix(Role::shared_up), nullptr, Act::up},
                           backend::LinearPart{w.matrix(Role::shared_gate), nullptr, Act::gate}};
    const bool has_gate = spec.ffn == Ffn::experts;
    TESSERA_TRY_STATUS(b.linear_group(std::span(parts).first(has_gate ? 2 : 1), input.act));
    TESSERA_TRY_STATUS(b.activated_linear({.kind = spec.activation, .gate = has_gate ? Act::gate : Act::count, .up = Act::up},
                                          *w.matrix(Role::shared_down), nullptr, Act::h2));
    if (const backend::Matrix* weight = w.matrix(Role::shared_weight)) {
      TESSERA_TRY_STATUS(b.linear(*weight, input.act, Act::router));
      TESSERA_TRY_STATUS(b.weigh(Act::router, Act::h2));
    }
    TESSERA_TRY_STATUS(b.add(Act::h2, Act::linear));
  }
  return rejoin_linear(pass, norm_of(pass, w, Role::ffn_post_norm), spec.residual_scale);
}

}  // namespace expert
}  // namespace

constexpr FeedBlock kExpertFeed{expert::run, make_room_for_experts};

}  // namespace tessera::detail
