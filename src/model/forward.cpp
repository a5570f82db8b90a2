// The whole transformer, once, for every architecture and backend.
#include "model/forward.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/load/roles.hpp"

namespace tessera::detail {

namespace {

using backend::Act;

// What the two halves of a layer read.
struct Inputs {
  Input mixer, feed;
};

// Parallel halves both read x as it is now, so their norm comes first; sequential ones norm x when they begin.
Result<Inputs> inputs_of(const Pass& pass, const Layer& layer) {
  const auto norm = norm_of(pass, layer.weights, Role::attn_norm, Role::attn_norm_bias);
  if (pass.model.spec.block == Block::sequential) {
    const auto feed_norm =
        layer.spec.mixer == Mixer::none ? norm : norm_of(pass, layer.weights, Role::ffn_norm, Role::ffn_norm_bias);
    const auto input = [](const auto& own) { return Input{own, own ? Act::h : Act::x}; };
    return Inputs{.mixer = input(norm), .feed = input(feed_norm)};
  }
  TESSERA_TRY_STATUS(pass.backend.norm(*norm, Act::x, Act::h));
  const Input shared{.norm = {}, .act = Act::h};
  const auto own = norm_of(pass, layer.weights, Role::attn_norm_2, Role::attn_norm_2_bias);
  return Inputs{.mixer = own ? Input{own, Act::h2} : shared, .feed = shared};
}

Status feed(const Pass& pass, const Layer& layer, const Input& input) {
  switch (layer.spec.ffn) {
    case Ffn::plain: return plain_feed(pass, layer, input);
    case Ffn::experts:
    case Ffn::plain_experts: return expert_feed(pass, layer, input);
    case Ffn::none: return {};
    case Ffn::dense_and_experts: return dense_and_expert_feed(pass, layer, input);
    case Ffn::gated: break;
  }
  return gated_feed(pass, layer, input);
}

Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  switch (layer.spec.mixer) {
    case Mixer::none: return {};
    case Mixer::delta_net: return delta_net_remember(pass, layer, input);
    case Mixer::short_convolution: return short_convolution_remember(pass, layer, input);
    case Mixer::mamba2: return mamba2_remember(pass, layer, input);
    case Mixer::attention: break;
  }
  if (layer.spec.is_latent()) return latent_remember(pass, layer, input);
  return attention_remember(pass, layer, input);
}

Status look_back(const Pass& pass, const Layer& layer) {
  switch (layer.spec.mixer) {
    case Mixer::none: return {};
    case Mixer::delta_net: return delta_net_look_back(pass, layer);
    case Mixer::short_convolution: return short_convolution_look_back(pass, layer);
    case Mixer::mamba2: return mamba2_look_back(pass, layer);
    case Mixer::attention: break;
  }
  if (layer.spec.is_latent()) return latent_look_back(pass, layer);
  return attention_look_back(pass, layer);
}

// What remember() leaves to look_back().
std::span<const Act> left_by(const LayerSpec& layer) {
  switch (layer.mixer) {
    case Mixer::none: return {};
    case Mixer::delta_net: return kDeltaNetLeaves;
    case Mixer::short_convolution: return kShortConvolutionLeaves;
    case Mixer::mamba2: return kMamba2Leaves;
    case Mixer::attention: break;
  }
  return std::span(kAttentionLeaves).first(layer.output_gate == OutputGate::none ? 1 : 2);
}

// What comes behind both halves, in models that have it.
Status leave_layer(const Pass& pass, const Layer& layer) {
  if (pass.model.spec.per_layer_dim != 0) TESSERA_TRY_STATUS(per_layer_feed(pass, layer));
  const float scale = layer.weights.output_scale;
  return scale != 1.0f ? pass.backend.scale(scale, Act::x) : Status();
}

// x -> mixer -> feed -> x. In the step's last layer all rows leave what later ones will see; the wanted ones alone go on: from
// there, or where rows vote, from behind their attention.
Status run_layer(const Pass& pass, const Layer& layer) {
  const Step& step = pass.step;
  TESSERA_TRY(const Inputs in, inputs_of(pass, layer));
  TESSERA_TRY_STATUS(remember(pass, layer, in.mixer));
  const bool is_last = layer.index + 1 == step.last_layer && step.wanted.size() < step.rows.size();
  const auto drop_rows = [&](std::span<const Act> left) -> Status {
    std::array<Act, backend::kActs> alive{Act::x};
    auto end = std::ranges::copy(left, alive.begin() + 1).out;
    const bool feed_is_ready = !in.feed.norm && in.feed.act != Act::x;  // what it reads is there already
    if (feed_is_ready) *end++ = in.feed.act;
    if (pass.model.spec.per_layer_dim != 0) *end++ = Act::per_layer;
    return pass.backend.keep_rows(step.wanted, {alive.begin(), end});
  };
  if (is_last && step.votes.empty()) {
    if (step.wanted.empty()) return {};
    TESSERA_TRY_STATUS(drop_rows(left_by(layer.spec)));
  }
  TESSERA_TRY_STATUS(look_back(pass, layer));
  if (is_last && !step.votes.empty()) {
    if (step.wanted.empty()) return {};
    TESSERA_TRY_STATUS(drop_rows({}));
  }
  TESSERA_TRY_STATUS(feed(pass, layer, in.feed));
  return leave_layer(pass, layer);
}

// The tokens of those of the selected rows that want one, out of Act::logits.
Status draw_tokens(backend::Backend& b, const Step& step, std::span<const std::uint32_t> selected, OutputSink& sink) {
  std::array<backend::SampleRow, kOutputRows> draws;
  std::array<std::uint32_t, kOutputRows> rows;  // of the step
  std::array<Token, kOutputRows> tokens;
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const std::uint32_t row = step.wanted[selected[i]];
    if (step.outputs[row] != RowOutput::token) continue;
    rows[n] = row;
    draws[n] = sink.draw(row);
    draws[n++].row = i;
  }
  if (n == 0) return {};
  const Status together = b.sample(Act::logits, {draws.data(), n}, {tokens.data(), n});
  for (std::size_t i = 0; i < n; ++i) {
    // A row that cannot be drawn from (it has a NaN) is no fault of its neighbours'.
    const Status alone = together || n == 1 ? together : b.sample(Act::logits, {&draws[i], 1}, {&tokens[i], 1});
    sink.drawn(rows[i], alone ? Result<Token>(tokens[i]) : Result<Token>(alone.error()));
  }
  return {};
}

// The final norm of these rows of x.
Status embeddings(backend::Backend& b, const backend::Norm& norm, const Step& step, std::span<const std::uint32_t> selected, OutputSink& sink) {
  TESSERA_TRY_STATUS(b.select_rows(selected, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.norm(norm, Act::h, Act::h2));
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const std::uint32_t row = step.wanted[selected[i]];
    TESSERA_TRY_STATUS(b.read(Act::h2, i, sink.destination(row)));
    sink.done(row);
  }
  return {};
}

const backend::Matrix* output_of(const Model& model) {
  const backend::Matrix* own = model.weights.matrix(Role::output);
  return own != nullptr ? own : model.weights.matrix(Role::token_embd);
}

Status finish_logits(const Pass& pass) {
  const ModelSpec& spec = pass.model.spec;
  if (spec.logit_scale != 1.0f) TESSERA_TRY_STATUS(pass.backend.scale(spec.logit_scale, Act::logits));
  return spec.logit_softcap != 0.0f ? pass.backend.softcap(spec.logit_softcap, Act::logits) : Status();
}

// x has the wanted rows alone: the final norm and the logits of those that want them, or a token, or the norm alone, a few at a
// time; hidden states as they are.
Status outputs(const Pass& pass, OutputSink& sink) {
  const Model& model = pass.model;
  const Step& step = pass.step;
  backend::Backend& b = pass.backend;
  const backend::Matrix* head = output_of(model);
  const auto norm = norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias);
  std::array<std::uint32_t, kOutputRows> selected;  // of x
  std::uint32_t at = 0;
  while (at < step.wanted.size()) {
    std::size_t n = 0;
    bool are_embeddings = false;
    for (; at < step.wanted.size() && n < selected.size(); ++at) {
      const std::uint32_t row = step.wanted[at];
      if (step.outputs[row] == RowOutput::nothing) continue;
      if (step.outputs[row] != RowOutput::hidden) {
        const bool is_embedding = step.outputs[row] == RowOutput::embedding;
        if (n > 0 && is_embedding != are_embeddings) break;
        are_embeddings = is_embedding;
        selected[n++] = at;
        continue;
      }
      TESSERA_TRY_STATUS(b.read(Act::x, at, sink.destination(row)));
      sink.done(row);
    }
    if (n == 0) continue;
    if (are_embeddings) {
      TESSERA_TRY_STATUS(embeddings(b, *norm, step, {selected.data(), n}, sink));
      continue;
    }
    TESSERA_TRY_STATUS(b.select_rows({selected.data(), n}, Act::x, Act::h));
    TESSERA_TRY_STATUS(b.norm_linear_group(*norm, Act::h, Act::h2,
                                           std::array{backend::LinearPart{.weight = head, .out = Act::logits}}));
    TESSERA_TRY_STATUS(finish_logits(pass));
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t row = step.wanted[selected[i]];
      if (step.outputs[row] != RowOutput::logits) continue;
      TESSERA_TRY_STATUS(b.read(Act::logits, i, sink.destination(row)));
      sink.done(row);
    }
    TESSERA_TRY_STATUS(draw_tokens(b, step, {selected.data(), n}, sink));
  }
  return {};
}

// All rows leave in the MTP head's pages what guesses will see: keys and values of each row's token and the hidden state before it.
Status remember_for_mtp(const Pass& pass) {
  const Layer head = pass.model.layer(pass.model.spec.n_layers());
  TESSERA_TRY_STATUS(mtp_inputs(pass, head));
  TESSERA_TRY(const Inputs in, inputs_of(pass, head));
  return remember(pass, head, in.mixer);
}

// The MTP head's guess for the step's one row, between begin() and end().
Status guess(const Pass& pass, const MtpRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Layer stored = model.layer(model.spec.n_layers());
  // What is at position 0 has no hidden state before it, and a window to there does not see it.
  LayerSpec spec = stored.spec;
  if (spec.window == 0 || spec.window > row.position) spec.window = static_cast<std::uint32_t>(row.position);
  const Layer head{stored.index, spec, stored.weights};
  TESSERA_TRY_STATUS(mtp_inputs_of_guess(pass, head));
  TESSERA_TRY(const Inputs in, inputs_of(pass, head));
  TESSERA_TRY_STATUS(remember(pass, head, in.mixer));
  TESSERA_TRY_STATUS(look_back(pass, head));
  TESSERA_TRY_STATUS(feed(pass, head, in.feed));
  TESSERA_TRY_STATUS(leave_layer(pass, head));
  auto norm = norm_of(pass, head.weights, Role::mtp_output_norm);
  if (!norm) norm = norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias);
  TESSERA_TRY_STATUS(b.norm(*norm, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.read(Act::h, 0, hidden));
  const backend::Matrix* output = head.weights.matrix(Role::mtp_output);
  TESSERA_TRY_STATUS(b.linear(output != nullptr ? *output : *output_of(model), Act::h, Act::logits));
  TESSERA_TRY_STATUS(finish_logits(pass));
  return b.read(Act::logits, 0, logits);
}

// Between begin() and end().
Status run(const Pass& pass, OutputSink& sink, const std::stop_token& stop) {
  const Model& model = pass.model;
  const Step& step = pass.step;
  TESSERA_TRY_STATUS(pass.backend.embed(*model.weights.matrix(Role::token_embd), model.spec.embedding_scale, Act::x));
  if (model.spec.positions == Positions::learned && step.first_layer == 0) {
    TESSERA_TRY_STATUS(pass.backend.add_positions(*model.weights.matrix(Role::position_embd), Act::linear, Act::x));
  }
  if (model.spec.per_layer_dim != 0) TESSERA_TRY_STATUS(per_layer_inputs(pass));
  for (std::uint32_t layer = step.first_layer; layer < step.last_layer; ++layer) {
    if (stop.stop_requested()) {
      return make_error(ErrorCode::cancelled, "stopped before layer {}; the session is as it was", layer);
    }
    TESSERA_TRY_STATUS(run_layer(pass, model.layer(layer)));
  }
  TESSERA_TRY_STATUS(outputs(pass, sink));
  const bool whole = step.first_layer == 0 && step.last_layer == model.spec.n_layers();
  return whole && model.spec.has_mtp() ? remember_for_mtp(pass) : Status();
}

}  // namespace

Status check_layers(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) {
  if (first != 0 && spec.per_layer_dim != 0) {
    return make_error(ErrorCode::unsupported, "layers from {} on alone: each needs what it gets of the tokens, which the first computes", first);
  }
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint32_t source = spec.layers[i].keys_of;
    if (source == kOwnKeys || source >= first) continue;
    return make_error(ErrorCode::unsupported, "layers {} to {} alone: layer {} reads the keys and values of layer {}", first, last, i, source);
  }
  return {};
}

constexpr std::string_view name_of(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::silu: return "SiLU";
    case ActivationKind::gelu_tanh: return "GELU, the tanh form";
    case ActivationKind::gelu_erf: return "GELU";
    case ActivationKind::clamped_swiglu: return "clamped SwiGLU";
    case ActivationKind::sigmoid: return "sigmoid";
    case ActivationKind::squared_relu: return "squared ReLU";
  }
  return "?";
}

Status check_activation(const ModelSpec& spec, ActivationKind kind, const backend::Backend& b) {
  if (b.activates(kind)) return {};
  return make_error(ErrorCode::unsupported, "architecture \"{}\": backend {} does not compute the activation \"{}\"", spec.architecture,
                    b.name(), name_of(kind));
}

Status check_parts(const ModelSpec& spec, const backend::Backend& b) {
  const auto refused = [&](backend::Part part, bool has_it, std::string_view name) -> Status {
    if (!has_it || b.computes(part)) return {};
    return make_error(ErrorCode::unsupported, "architecture \"{}\": backend {} does not compute {}", spec.architecture,
                      b.name(), name);
  };
  TESSERA_TRY_STATUS(refused(backend::Part::softcap, spec.logit_softcap != 0.0f, "a softcap of logits"));
  const auto any = [&](auto has) { return std::ranges::any_of(spec.layers, has); };
  const bool has_experts = any([](const LayerSpec& layer) { return layer.has_experts(); });
  const bool norms_values = any([](const LayerSpec& layer) { return layer.value_norm != ValueNorm::none; });
  const bool shares_keys = any([](const LayerSpec& layer) { return layer.keys_of != kOwnKeys; });
  const bool caps_scores = any([](const LayerSpec& layer) { return layer.score_softcap != 0.0f; });
  const bool has_sinks = any([](const LayerSpec& layer) { return layer.sinks != Sinks::none; });
  TESSERA_TRY_STATUS(refused(backend::Part::score_softcap, caps_scores, "a softcap of attention scores"));
  TESSERA_TRY_STATUS(refused(backend::Part::sinks, has_sinks, "sink logits"));
  TESSERA_TRY_STATUS(refused(backend::Part::value_norm, norms_values, "values that are normed"));
  TESSERA_TRY_STATUS(refused(backend::Part::shared_keys, shares_keys, "layers that share keys and values"));
  TESSERA_TRY_STATUS(refused(backend::Part::global_tokens, any([](const LayerSpec& layer) { return layer.globals != 0; }),
                             "windows with global tokens"));
  TESSERA_TRY_STATUS(refused(backend::Part::per_layer_inputs, spec.per_layer_dim != 0, "embeddings of each layer"));
  TESSERA_TRY_STATUS(refused(backend::Part::experts, has_experts, "mixtures of experts"));
  TESSERA_TRY_STATUS(refused(backend::Part::recurrence, any([](const LayerSpec& layer) { return layer.is_recurrent(); }),
                             "recurrent layers"));
  TESSERA_TRY_STATUS(refused(backend::Part::recurrence, spec.has_mtp(), "MTP heads"));
  TESSERA_TRY_STATUS(refused(backend::Part::latent, any([](const LayerSpec& layer) { return layer.is_latent(); }), "latent attention"));
  for (const LayerSpec& layer : spec.layers) {
    if (layer.ffn != Ffn::none) TESSERA_TRY_STATUS(check_activation(spec, layer.activation, b));
    if (layer.output_gate == OutputGate::sigmoid) TESSERA_TRY_STATUS(check_activation(spec, ActivationKind::sigmoid, b));
  }
  return refused(backend::Part::temperature, spec.temperature_rate != 0.0, "queries that grow with their position");
}

backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept {
  backend::WorkspaceShape shape{.rows = rows, .output_rows = std::min(rows, kOutputRows)};
  const auto columns = [&shape](Act act, std::uint64_t n) {
    std::uint64_t& at = shape.columns[static_cast<std::size_t>(act)];
    at = std::max(at, n);
  };
  for (const Act act : {Act::x, Act::h, Act::h2, Act::linear}) columns(act, spec.d_model);
  columns(Act::logits, spec.vocab_size);
  for (const RopeSpec& rope : spec.ropes) {
    ++shape.ropes;
    shape.rope_dims += rope.dim;
  }
  if (spec.per_layer_dim != 0) {
    for (const Act act : {Act::per_layer, Act::up}) columns(act, std::uint64_t{spec.per_layer_dim} * spec.n_layers());
    columns(Act::gate, spec.per_layer_dim);
  }
  for (const LayerSpec& layer : spec.layers) {
    columns(Act::q, std::uint64_t{layer.n_heads} * layer.key_dim);
    columns(Act::k, std::uint64_t{layer.n_kv_heads} * layer.key_dim);
    columns(Act::v, std::uint64_t{layer.n_kv_heads} * layer.value_dim);
    columns(Act::attn, std::uint64_t{layer.n_heads} * layer.value_dim);
    if (layer.output_gate != OutputGate::none) columns(Act::gate, std::uint64_t{layer.n_heads} * layer.value_dim);
    if (layer.is_latent()) {
      columns(Act::gate, std::max(extent::all_plain(spec, layer), extent::head_values(spec, layer)));
      columns(Act::up, extent::all_turned(spec, layer));
      columns(Act::v, extent::turned(spec, layer));
      columns(Act::linear, layer.query_rank);
      shape.head_inputs = std::max<std::uint64_t>({shape.head_inputs, layer.plain_dim, layer.value_dim});
    }
    if (layer.mixer == Mixer::short_convolution) {
      for (const Act act : {Act::q, Act::k, Act::v}) columns(act, spec.d_model);
    } else if (layer.is_recurrent()) {
      columns(Act::q, extent::mixed(spec, layer));
      for (const Act act : {Act::v, Act::attn}) columns(act, extent::all_values(spec, layer));
      for (const Act act : {Act::k, Act::gate}) columns(act, layer.state_heads);
    }
    if (layer.has_experts()) {
      columns(Act::router, layer.n_experts);
      for (const Act act : {Act::up, Act::gate}) columns(act, std::max(layer.shared_dim, layer.expert_width));
      shape.n_experts = std::max(shape.n_experts, layer.n_experts);
      shape.used_experts = std::max(shape.used_experts, layer.n_used);
      shape.expert_inputs = std::max(shape.expert_inputs, extent::expert_width(spec, layer));
      shape.expert_dim = std::max<std::uint64_t>(shape.expert_dim, layer.ffn_dim);
    } else if (layer.ffn != Ffn::none) {
      columns(Act::up, layer.ffn_dim);
      if (layer.ffn == Ffn::gated) columns(Act::gate, layer.ffn_dim);
    }
    if (layer.mixer != Mixer::attention) continue;
    shape.max_heads = std::max(shape.max_heads, layer.n_heads);
    shape.max_group = std::max(shape.max_group, layer.n_heads / layer.n_kv_heads);
    shape.max_key_dim = std::max(shape.max_key_dim, layer.key_dim);
    shape.max_value_dim = std::max(shape.max_value_dim, layer.value_dim);
  }
  return shape;
}

namespace {

// begin(), what `compute` does, and end(): also after an error, since what a device has under way would write to pages that are given
// back.
template <class Compute>
Status between(const Model& model, backend::Backend& b, const Step& step, Compute compute) {
  struct Ended {
    backend::Backend& b;
    bool done = false;
    ~Ended() {
      if (!done) (void)b.end();
    }
  } ended{b};
  TESSERA_TRY_STATUS(b.begin({.rows = step.rows, .sequences = step.sequences, .ropes = model.ropes, .votes = step.votes}));
  TESSERA_TRY_STATUS(compute(Pass{.model = model, .backend = b, .step = step}));
  ended.done = true;
  return b.end();
}

}  // namespace

Status forward(const Model& model, backend::Backend& b, const Step& step, OutputSink& sink, const std::stop_token& stop) {
  return between(model, b, step, [&](const Pass& pass) { return run(pass, sink, stop); });
}

Status mtp_forward(const Model& model, backend::Backend& b, const MtpRow& row, std::span<float> logits, std::span<float> hidden,
                   const std::stop_token& stop) {
  if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped before the MTP head; the session is as it was");
  const backend::RowTable table{.embedding = row.hidden, .token = row.token, .position = row.position};
  const Step step{.rows = {&table, 1}, .sequences = {&row.kv, 1}, .outputs = {}, .wanted = {}};
  return between(model, b, step, [&](const Pass& pass) { return guess(pass, row, logits, hidden); });
}

}  // namespace tessera::detail
