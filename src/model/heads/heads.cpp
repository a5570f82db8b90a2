// Functions that the kinds of draft heads share.
#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

LayerSpec spec_of_guess(const Model& model, std::uint64_t position) {
  LayerSpec spec = model.layer(model.spec.n_layers()).spec;
  if (spec.window == 0 || spec.window > position) spec.window = static_cast<std::uint32_t>(position);
  return spec;
}

backend::AttentionShape attention_of_guess(const Model& model, std::uint64_t position) {
  const Layer stored = model.layer(model.spec.n_layers());
  const LayerSpec spec = spec_of_guess(model, position);
  return mixer_of(spec).attention({stored.index, spec, stored.weights});
}

Status shift_hidden(const Pass& pass) {
  if (draft_heads_of(pass.model.spec)->kept == HiddenKept::in_pages) return pass.backend.shift_rows(hidden_layer(pass.model.spec), Act::h);
  return pass.backend.convolve({.layer = hidden_layer(pass.model.spec), .weight = pass.model.hidden_shift}, Act::h);
}

Status guess_by_heads(const Model& model, backend::Backend& b, const HeadRow& row, std::span<float> logits, std::span<float> hidden,
                      const std::stop_token& stop) {
  const DraftHeads& heads = *draft_heads_of(model.spec);
  if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped before the {}; the session is as it was", heads.name);
  const backend::RowTable table{.embedding = row.hidden, .token = row.token, .position = row.position};
  backend::AttentionShape attention;
  if (heads.attention != nullptr) attention = heads.attention(model, row.position);
  const Step step{.rows = {&table, 1},
                  .sequences = {&row.kv, 1},
                  .outputs = {},
                  .wanted = {},
                  .attentions = {&attention, heads.attention != nullptr ? 1u : 0u}};
  return between(model, b, step, [&](const Pass& pass) { return heads.guess(pass, row, logits, hidden); });
}

}  // namespace tessera::detail
