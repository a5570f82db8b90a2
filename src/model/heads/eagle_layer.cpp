#include "model/heads/eagle_layer.hpp"

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

std::optional<backend::Norm> eagle_norm_of(const Pass& pass, const Weights& weights, Role weight) {
  const backend::Vector* vector = weights.vector(weight);
  if (vector == nullptr) return std::nullopt;
  return backend::Norm{.kind = NormKind::rms, .weight = vector, .eps = pass.model.spec.draft_heads.norm_eps};
}

Status finish_eagle_layer(const Pass& pass, const Layer& head) {
  TESSERA_TRY_STATUS(mixer_of(head.spec).look_back(pass, head));
  return feed_of(head.spec).run(pass, head, {.norm = eagle_norm_of(pass, head.weights, Role::ffn_norm), .act = Act::h});
}

Status read_target_logits(const Pass& pass, Act in, std::span<float> logits) {
  const Model& model = pass.model;
  TESSERA_TRY_STATUS(pass.backend.linear_bias(*output_of(model), model.weights.vector(Role::output_bias), in, Act::logits));
  TESSERA_TRY_STATUS(finish_logits(pass));
  return pass.backend.read(Act::logits, 0, logits);
}

void make_room_for_eagle_layer(const ModelSpec& spec, backend::WorkspaceShape& shape) {
  for (const LayerSpec& layer : spec.draft_heads.layers) {
    mixer_of(layer).make_room(spec, layer, shape);
    feed_of(layer).make_room(spec, layer, shape);
  }
}

}  // namespace tessera::detail
