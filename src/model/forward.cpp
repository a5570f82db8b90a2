// The forward pass, the same for every architecture and backend. The halves of a layer (mixer and feed) are in blocks/, a file each.
#include "model/forward.hpp"

#include <algorithm>
#include <array>

#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

// Norms the residual stream itself. Does nothing in models that have no norm after the sum of the stream and a half's output.
Status norm_sum(const Pass& pass, const Layer& layer, Role weight, Role bias) {
  const auto norm = norm_of(pass, layer.weights, weight, bias);
  return norm ? pass.backend.norm(*norm, Act::x, Act::x) : Status();
}

// Computes the layer's feed and its end: the norm of the sum, the per-layer inputs and the output scale, in models that have them.
Status feed_and_scale(const Pass& pass, const Layer& layer, const Input& input) {
  TESSERA_TRY_STATUS(norm_sum(pass, layer, Role::attn_sum_norm, Role::attn_sum_norm_bias));
  TESSERA_TRY_STATUS(feed_of(layer.spec).run(pass, layer, input));
  TESSERA_TRY_STATUS(norm_sum(pass, layer, Role::ffn_sum_norm, Role::ffn_sum_norm_bias));
  if (pass.model.spec.per_layer_dim != 0) TESSERA_TRY_STATUS(per_layer_feed(pass, layer));
  const float scale = layer.weights.output_scale;
  return scale != 1.0f ? pass.backend.scale(scale, Act::x) : Status();
}

}  // namespace

// Parallel halves both read x as it is now, so the norm is computed here. Sequential halves norm x when they begin.
Result<Inputs> inputs_of(const Pass& pass, const Layer& layer) {
  const auto norm = norm_of(pass, layer.weights, Role::attn_norm, Role::attn_norm_bias);
  if (pass.model.spec.wiring == Wiring::sequential) {
    const auto feed_norm =
        layer.spec.mixer == Mixer::none ? norm : norm_of(pass, layer.weights, Role::ffn_norm, Role::ffn_norm_bias);
    const auto input = [](const auto& own) { return Input{own, own ? Act::h : Act::x}; };
    return Inputs{.mixer = input(norm), .feed = input(feed_norm)};
  }
  const auto feed_norm = norm_of(pass, layer.weights, Role::ffn_norm, Role::ffn_norm_bias);
  TESSERA_TRY_STATUS(pass.backend.norm(feed_norm ? *feed_norm : *norm, Act::x, Act::h));
  const Input shared{.norm = {}, .act = Act::h};
  const auto own = feed_norm ? norm : norm_of(pass, layer.weights, Role::attn_norm_2, Role::attn_norm_2_bias);
  return Inputs{.mixer = own ? Input{own, Act::h2} : shared, .feed = shared};
}

Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  return layer.place.here ? mixer_of(layer.spec).remember(pass, layer, input) : Status();
}

Status look_back(const Pass& pass, const Layer& layer) {
  if (layer.place.here) TESSERA_TRY_STATUS(mixer_of(layer.spec).look_back(pass, layer));
  const bool shares = layer.place.rank != kEveryRank && layer.place.of == LayerPlace::Of::mixer;
  return shares ? pass.backend.share(layer.place.rank, Act::x) : Status();
}

namespace {

// Sends the layer's result to all ranks, if one rank has computed the layer and another rank needs the result.
Status leave(const Pass& pass, const Layer& layer) {
  const bool shares = layer.place.of == LayerPlace::Of::layer && layer.place.shares;
  return shares ? pass.backend.share(layer.place.rank, Act::x) : Status();
}

}  // namespace

// Computes the layer: x -> mixer -> feed -> x. For a Llama layer, with x the residual stream [rows, d_model]:
//
//   remember()        h = rms_norm(x);  q, k, v = Wq h, Wk h, Wv h;  q and k are rotated;  k and v go to the row's place in the pages
//   look_back()       x += Wo attention(q, pages): each row sees its own key and those before it
//   feed_and_scale()  h = rms_norm(x);  x += Wdown (silu(Wgate h) * Wup h)
//
// inputs_of() says which norm comes before each of the two halves. products() computes that norm with the half's first products, fused if
// the backend can. If a model lacks a weight (a bias, a norm of heads or after a half, a gate), the weight's operation is left out. If
// another rank has the layer, this rank does not compute the layer, but receives the layer's result (leave()). Exception: this rank receives
// nothing if the rank that has the layer has the next layer too.
Status run_layer(const Pass& pass, const Layer& layer) {
  if (layer.is_elsewhere()) return leave(pass, layer);
  TESSERA_TRY(const Inputs in, inputs_of(pass, layer));
  TESSERA_TRY_STATUS(remember(pass, layer, in.mixer));
  TESSERA_TRY_STATUS(look_back(pass, layer));
  TESSERA_TRY_STATUS(feed_and_scale(pass, layer, in.feed));
  return leave(pass, layer);
}

namespace {

// Drops all rows of the step except the wanted rows, so that only these are computed further. Their values stay in x, in the activations
// `left` (what the mixer's remember() has left for look_back()), and in the activations that the feed and the per-layer feed read.
Status keep_wanted(const Pass& pass, const Input& feed, std::span<const Act> left) {
  std::array<Act, backend::kActs> alive{Act::x};
  auto end = std::ranges::copy(left, alive.begin() + 1).out;
  const bool feed_is_ready = !feed.norm && feed.act != Act::x;  // the feed's input is computed already
  if (feed_is_ready) *end++ = feed.act;
  if (pass.model.spec.per_layer_dim != 0) *end++ = Act::per_layer;
  return pass.backend.keep_rows({alive.begin(), end});
}

// Computes the step's last layer, if not all rows are wanted. All rows write their keys and values (or states) to the cache; from there
// on only the wanted rows are computed. Exception: if rows vote for a token budget, all rows also attend, and only the feed is computed
// for the wanted rows alone.
Status run_last_layer(const Pass& pass, const Layer& layer) {
  const bool votes = !pass.step.votes.empty();
  if (layer.is_elsewhere()) {
    if (pass.step.wanted.empty()) return {};
    TESSERA_TRY_STATUS(keep_wanted(pass, {{}, Act::x}, {}));
    return leave(pass, layer);
  }
  TESSERA_TRY(const Inputs in, inputs_of(pass, layer));
  TESSERA_TRY_STATUS(remember(pass, layer, in.mixer));
  if (votes) TESSERA_TRY_STATUS(look_back(pass, layer));
  if (pass.step.wanted.empty()) return {};
  const bool leaves = !votes && layer.place.here;
  TESSERA_TRY_STATUS(keep_wanted(pass, in.feed, leaves ? mixer_of(layer.spec).leaves(layer.spec) : std::span<const Act>()));
  if (!votes) TESSERA_TRY_STATUS(look_back(pass, layer));
  TESSERA_TRY_STATUS(feed_and_scale(pass, layer, in.feed));
  return leave(pass, layer);
}

// Adds the embeddings of segments to the tokens' embeddings, if the model has segments. Norms the result, if the model has that norm.
Status finish_embedding(const Pass& pass) {
  const Model& model = pass.model;
  if (pass.step.first_layer != 0) return {};
  if (model.spec.n_segments != 0) TESSERA_TRY_STATUS(pass.backend.add_segments(*model.weights.matrix(Role::segment_embd), Act::linear, Act::x));
  const auto norm = norm_of(pass, model.weights, Role::embd_norm, Role::embd_norm_bias);
  return norm ? pass.backend.norm(*norm, Act::x, Act::x) : Status();
}

// Computes the step. Called between begin() and end().
Status run(const Pass& pass, OutputSink& sink, const std::stop_token& stop) {
  const Model& model = pass.model;
  const Step& step = pass.step;
  TESSERA_TRY_STATUS(pass.backend.embed(*model.weights.matrix(Role::token_embd), model.spec.embedding_scale, Act::x));
  if (model.spec.positions == Positions::learned && step.first_layer == 0) {
    TESSERA_TRY_STATUS(pass.backend.add_positions(*model.weights.matrix(Role::position_embd), Act::linear, Act::x));
  }
  TESSERA_TRY_STATUS(finish_embedding(pass));
  if (model.spec.per_layer_dim != 0) TESSERA_TRY_STATUS(per_layer_inputs(pass));
  const bool whole = step.first_layer == 0 && step.last_layer == model.spec.n_layers();
  const DraftHeads* heads = whole ? draft_heads_of(model.spec) : nullptr;
  const bool watches = heads != nullptr && heads->watch != nullptr;
  for (std::uint32_t layer = step.first_layer; layer < step.last_layer; ++layer) {
    if (stop.stop_requested()) {
      return make_error(ErrorCode::cancelled, "stopped before layer {}; the session is as it was", layer);
    }
    if (watches) TESSERA_TRY_STATUS(heads->watch(pass, layer));
    const bool drops_rows = layer + 1 == step.last_layer && step.wanted.size() < step.rows.size();
    TESSERA_TRY_STATUS(drops_rows ? run_last_layer(pass, model.layer(layer)) : run_layer(pass, model.layer(layer)));
  }
  if (watches) TESSERA_TRY_STATUS(heads->watch(pass, step.last_layer));
  TESSERA_TRY_STATUS(outputs(pass, sink));
  return heads != nullptr ? heads->remember(pass) : Status();
}

}  // namespace

Status forward(const Model& model, backend::Backend& b, const Step& step, OutputSink& sink, const std::stop_token& stop) {
  return between(model, b, step, [&](const Pass& pass) { return run(pass, sink, stop); });
}

}  // namespace tessera::detail
