// The whole transformer, once, for every architecture and backend.
#include "model/forward.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "support/error.hpp"

namespace tessera::detail {

namespace {

using backend::Act;

backend::Norm norm_of(const Model& model, const Parts& parts, Role weight, Role bias) {
  return {static_cast<backend::NormKind>(model.spec.norm), parts.vector(weight), parts.vector(bias), model.spec.norm_eps};
}

// What a block's first products read: x after a norm of their own, or what a norm has left in `in` for several.
struct Input {
  std::optional<backend::Norm> norm;
  Act in;
};

Status products(backend::Backend& b, const Input& of, std::span<const backend::LinearPart> parts) {
  return of.norm ? b.norm_linear_group(*of.norm, Act::x, of.in, parts) : b.linear_group(parts, of.in);
}

// -> q, k, v; k and v -> KV cache
Status project(const Model& model, backend::Backend& b, std::uint32_t layer, const Input& in) {
  const LayerSpec& spec = model.spec.layers[layer];
  const Parts& w = model.layers[layer];
  const std::array parts{
      backend::LinearPart{w.matrix(Role::attn_q), w.vector(Role::attn_q_bias), Act::q},
      backend::LinearPart{w.matrix(Role::attn_k), w.vector(Role::attn_k_bias), Act::k},
      backend::LinearPart{w.matrix(Role::attn_v), w.vector(Role::attn_v_bias), Act::v},
  };
  TESSERA_TRY_STATUS(products(b, in, parts));
  return b.rope_append({.layer = layer,
                        .n_heads = spec.n_heads,
                        .n_kv_heads = spec.n_kv_heads,
                        .q_norm = w.vector(Role::attn_q_norm),
                        .k_norm = w.vector(Role::attn_k_norm),
                        .eps = model.spec.norm_eps}, Act::q, Act::k, Act::v);
}

// q -> attention -> x +=
Status attention(const Model& model, backend::Backend& b, std::uint32_t layer) {
  const LayerSpec& spec = model.spec.layers[layer];
  const Parts& w = model.layers[layer];
  TESSERA_TRY_STATUS(b.attention({.layer = layer, .n_heads = spec.n_heads, .window = spec.window, .scale = spec.scale},
                                 Act::q, Act::attn));
  return b.linear_residual(*w.matrix(Role::attn_output), w.vector(Role::attn_output_bias), Act::attn, Act::x);
}

// -> FFN -> x +=
Status ffn(const Model& model, backend::Backend& b, std::uint32_t layer, const Input& in) {
  const Parts& w = model.layers[layer];
  const bool gated = model.spec.ffn == Ffn::gated;
  std::array parts{
      backend::LinearPart{w.matrix(Role::ffn_up), w.vector(Role::ffn_up_bias), Act::up},
      backend::LinearPart{w.matrix(Role::ffn_gate), w.vector(Role::ffn_gate_bias), Act::gate},
  };
  TESSERA_TRY_STATUS(products(b, in, std::span(parts).first(gated ? 2 : 1)));
  return b.activated_linear_residual({.kind = static_cast<backend::ActivationKind>(model.spec.activation),
                                      .gate = gated ? Act::gate : Act::count,
                                      .up = Act::up},
                                     *w.matrix(Role::ffn_down), w.vector(Role::ffn_down_bias), Act::x);
}

Status transformer_layer(const Model& model, backend::Backend& b, std::uint32_t layer, const Step& step) {
  const Parts& w = model.layers[layer];
  const bool parallel = model.spec.block == Block::parallel;
  Input attention_in{norm_of(model, w, Role::attn_norm, Role::attn_norm_bias), Act::h}, ffn_in = attention_in;
  if (parallel) {  // both read x as it is now
    TESSERA_TRY_STATUS(b.norm(*ffn_in.norm, Act::x, Act::h));
    attention_in = ffn_in = {.norm = {}, .in = Act::h};
    if (w.vector(Role::attn_norm_2) != nullptr) {
      attention_in = {norm_of(model, w, Role::attn_norm_2, Role::attn_norm_2_bias), Act::h2};
    }
  } else {
    ffn_in.norm = norm_of(model, w, Role::ffn_norm, Role::ffn_norm_bias);
  }
  TESSERA_TRY_STATUS(project(model, b, layer, attention_in));
  if (layer + 1 == step.last_layer && step.wanted.size() < step.rows.size()) {
    // Of the other rows nothing more is needed: their keys and values are written.
    if (step.wanted.empty()) return {};
    constexpr std::array kAlive{Act::x, Act::q, Act::h};
    TESSERA_TRY_STATUS(b.keep_rows(step.wanted, std::span(kAlive).first(parallel ? 3 : 2)));
  }
  TESSERA_TRY_STATUS(attention(model, b, layer));
  return ffn(model, b, layer, ffn_in);
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
  TESSERA_TRY_STATUS(b.sample(Act::logits, {draws.data(), n}, {tokens.data(), n}));
  for (std::size_t i = 0; i < n; ++i) sink.drawn(rows[i], tokens[i]);
  return {};
}

// x has the wanted rows alone: the final norm and the logits of those that want them, or a token, a few at a time;
// hidden states as they are.
Status outputs(const Model& model, backend::Backend& b, const Step& step, OutputSink& sink) {
  const backend::Matrix* head = model.parts.matrix(Role::output);
  if (head == nullptr) head = model.parts.matrix(Role::token_embd);
  std::array<std::uint32_t, kOutputRows> selected;  // of x
  std::uint32_t at = 0;
  while (at < step.wanted.size()) {
    std::size_t n = 0;
    for (; at < step.wanted.size() && n < selected.size(); ++at) {
      const std::uint32_t row = step.wanted[at];
      if (step.outputs[row] != RowOutput::hidden) {
        selected[n++] = at;
        continue;
      }
      TESSERA_TRY_STATUS(b.read(Act::x, at, sink.destination(row)));
      sink.done(row);
    }
    if (n == 0) continue;
    TESSERA_TRY_STATUS(b.select_rows({selected.data(), n}, Act::x, Act::h));
    TESSERA_TRY_STATUS(b.norm_linear_group(norm_of(model, model.parts, Role::output_norm, Role::output_norm_bias), Act::h,
                                           Act::h2, std::array{backend::LinearPart{.weight = head, .out = Act::logits}}));
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

// Between begin() and end().
Status run(const Model& model, backend::Backend& b, const Step& step, OutputSink& sink, const std::stop_token& stop) {
  TESSERA_TRY_STATUS(b.embed(*model.parts.matrix(Role::token_embd), Act::x));
  if (model.spec.positions == Positions::learned && step.first_layer == 0) {
    TESSERA_TRY_STATUS(b.add_positions(*model.parts.matrix(Role::position_embd), Act::x));
  }
  for (std::uint32_t layer = step.first_layer; layer < step.last_layer; ++layer) {
    if (stop.stop_requested()) {
      return make_error(ErrorCode::cancelled, "stopped before layer {}; the session is as it was", layer);
    }
    TESSERA_TRY_STATUS(transformer_layer(model, b, layer, step));
  }
  return outputs(model, b, step, sink);
}

}  // namespace

backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept {
  backend::WorkspaceShape shape{.rows = rows, .output_rows = std::min(rows, kOutputRows), .rope_dim = spec.rope_dim};
  const auto columns = [&shape](Act act, std::uint64_t n) {
    std::uint64_t& at = shape.columns[static_cast<std::size_t>(act)];
    at = std::max(at, n);
  };
  for (const Act act : {Act::x, Act::h, Act::h2, Act::linear}) columns(act, spec.d_model);
  columns(Act::logits, spec.vocab_size);
  for (const LayerSpec& layer : spec.layers) {
    columns(Act::q, std::uint64_t{layer.n_heads} * layer.key_dim);
    columns(Act::k, std::uint64_t{layer.n_kv_heads} * layer.key_dim);
    columns(Act::v, std::uint64_t{layer.n_kv_heads} * layer.value_dim);
    columns(Act::attn, std::uint64_t{layer.n_heads} * layer.value_dim);
    columns(Act::up, layer.ffn_dim);
    if (spec.ffn == Ffn::gated) columns(Act::gate, layer.ffn_dim);
    shape.max_group = std::max(shape.max_group, layer.n_heads / layer.n_kv_heads);
    shape.max_key_dim = std::max(shape.max_key_dim, layer.key_dim);
    shape.max_value_dim = std::max(shape.max_value_dim, layer.value_dim);
  }
  return shape;
}

Status forward(const Model& model, backend::Backend& b, const Step& step, OutputSink& sink, const std::stop_token& stop) {
  // Also after an error: what a device has under way would write to pages that are given back.
  struct Ended {
    backend::Backend& b;
    bool done = false;
    ~Ended() {
      if (!done) (void)b.end();
    }
  } ended{b};
  TESSERA_TRY_STATUS(b.begin({.rows = step.rows,
                              .sequences = step.sequences,
                              .rope = {.interleaved = model.spec.rope_pairs == RopePairs::interleaved,
                                       .frequencies = model.rope_frequencies}}));
  TESSERA_TRY_STATUS(run(model, b, step, sink, stop));
  ended.done = true;
  return b.end();
}

}  // namespace tessera::detail
