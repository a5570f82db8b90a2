#include <cmath>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

float inverse_root(double x) noexcept { return static_cast<float>(1.0 / std::sqrt(x)); }

}  // namespace

Status per_layer_inputs(const Pass& pass) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const ModelSpec& spec = model.spec;
  const float of_token = static_cast<float>(std::sqrt(static_cast<double>(spec.per_layer_dim)));
  TESSERA_TRY_STATUS(b.gather(*model.weights.matrix(Role::per_layer_token_embd), of_token, Act::per_layer));
  TESSERA_TRY_STATUS(b.linear(*model.weights.matrix(Role::per_layer_model_proj), Act::x, Act::up));
  TESSERA_TRY_STATUS(b.scale(inverse_root(spec.d_model), Act::up));
  TESSERA_TRY_STATUS(b.head_norm(*model.weights.vector(Role::per_layer_proj_norm), spec.norm_eps, spec.n_layers(), Act::up));
  TESSERA_TRY_STATUS(b.add(Act::up, Act::per_layer));
  return b.scale(inverse_root(2.0), Act::per_layer);  // restores the Euclidean norm: the sum has two terms of about equal norm
}

void make_room_for_per_layer(const ModelSpec& model, backend::WorkspaceShape& shape) {
  if (model.per_layer_dim == 0) return;
  for (const Act act : {Act::per_layer, Act::up}) widen(shape, act, std::uint64_t{model.per_layer_dim} * model.n_layers());
  widen(shape, Act::gate, model.per_layer_dim);
}

Status per_layer_feed(const Pass& pass, const Layer& layer) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  const std::uint64_t dim = pass.model.spec.per_layer_dim;
  TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::per_layer_gate), Act::x, Act::gate));
  TESSERA_TRY_STATUS(b.take_columns(Act::per_layer, layer.index * dim, dim, Act::up));
  return rejoin(pass, {.weight = *w.matrix(Role::per_layer_proj),
                       .activated = {.kind = layer.spec.activation, .gate = Act::gate, .up = Act::up},
                       .post_norm = norm_of(pass, w, Role::per_layer_post_norm)});
}

}  // namespace tessera::detail
