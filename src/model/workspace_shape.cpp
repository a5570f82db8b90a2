// Collects what a backend must know before it computes any layer: the size of the workspace, and the attentions. Asks the blocks of all
// layers for these.
#include <algorithm>

#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/forward.hpp"

namespace tessera::detail {

using backend::Act;

backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept {
  backend::WorkspaceShape shape{.rows = rows, .output_rows = std::min(rows, kOutputRows)};
  for (const Act act : {Act::x, Act::h, Act::h2, Act::linear}) widen(shape, act, spec.d_model);
  if (spec.has_logits) widen(shape, Act::logits, spec.vocab_size);
  widen(shape, Act::up, std::max(spec.embedding_inner, spec.n_scores));
  widen(shape, Act::linear, spec.embedding_dim);
  for (const RopeSpec& rope : spec.ropes) {
    ++shape.ropes;
    shape.rope_dims += rope.dim;
  }
  make_room_for_per_layer(spec, shape);
  for (const LayerSpec& layer : spec.layers) {
    mixer_of(layer).make_room(spec, layer, shape);
    feed_of(layer).make_room(spec, layer, shape);
  }
  if (const DraftHeads* heads = draft_heads_of(spec); heads != nullptr && heads->make_room != nullptr) heads->make_room(spec, shape);
  return shape;
}

std::vector<backend::AttentionShape> attentions_of(const Model& model) {
  std::vector<backend::AttentionShape> shapes;
  for (std::uint32_t i = 0; i < model.spec.n_layers(); ++i) {
    const Layer layer = model.layer(i);
    if (mixer_of(layer.spec).attention != nullptr) shapes.push_back(mixer_of(layer.spec).attention(layer));
  }
  return shapes;
}

}  // namespace tessera::detail
