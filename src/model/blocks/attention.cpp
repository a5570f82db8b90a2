#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace attention {

// MixerBlock::remember() of attention. Computes queries, keys and values from the input, norms and rotates queries and keys, and writes
// keys and values to the pages. The queries stay in Act::q. If the layer has a gate for attention's output, the gate's values stay in
// Act::gate.
Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  const Weights& w = layer.weights;
  const bool has_gate = layer.spec.output_gate != OutputGate::none;
  const bool queries_alone = layer.spec.keys_of != kOwnKeys, values_are_keys = w.matrix(Role::attn_v) == nullptr;
  const std::array parts{
      backend::LinearPart{w.matrix(Role::attn_q), w.vector(Role::attn_q_bias), Act::q},
      backend::LinearPart{w.matrix(Role::attn_k), w.vector(Role::attn_k_bias), Act::k},
      backend::LinearPart{w.matrix(Role::attn_v), w.vector(Role::attn_v_bias), Act::v},
      backend::LinearPart{w.matrix(Role::attn_gate), nullptr, Act::gate},
  };
  TESSERA_TRY_STATUS(products(pass, input, std::span(parts).first(queries_alone ? 1 : values_are_keys ? 2 : has_gate ? 4 : 3)));
  if (!queries_alone && values_are_keys) {
    TESSERA_TRY_STATUS(pass.backend.take_columns(Act::k, 0, std::uint64_t{layer.spec.n_kv_heads} * layer.spec.value_dim, Act::v));
  }
  TESSERA_TRY_STATUS(pass.backend.rope_append({.layer = layer.index,
                                   .n_heads = layer.spec.n_heads,
                                   .n_kv_heads = layer.spec.n_kv_heads,
                                   .q_norm = w.vector(Role::attn_q_norm),
                                   .k_norm = w.vector(Role::attn_k_norm),
                                   .v_norm = w.value_norm,
                                   .norms_together = layer.spec.head_norms == HeadNorms::together,
                                   .norms_behind_rope = layer.spec.head_norm_place == HeadNormPlace::behind_rope,
                                   .eps = pass.model.spec.norm_eps,
                                   .rope = layer.spec.rope,
                                   .queries_alone = queries_alone},
                                  Act::q, Act::k, Act::v));
  return grow_queries(pass);
}

backend::AttentionShape shape_of(const Layer& layer) {
  return {.layer = layer.index,
          .n_heads = layer.spec.n_heads,
          .window = layer.spec.window,
          .globals = layer.spec.globals,
          .ahead = layer.spec.ahead,
          .scale = layer.spec.scale,
          .softcap = layer.spec.score_softcap,
          .sinks = layer.weights.vector(Role::attn_sinks)};
}

// MixerBlock::look_back() of attention. Computes the attention of the queries over the keys and values in the pages, and adds the output
// projection of the result to the residual stream x.
Status look_back(const Pass& pass, const Layer& layer) {
  const Weights& w = layer.weights;
  TESSERA_TRY_STATUS(attend(pass, layer, shape_of(layer)));
  const bool has_gate = layer.spec.output_gate != OutputGate::none;
  return rejoin(pass, {.weight = *w.matrix(Role::attn_output),
                       .bias = w.vector(Role::attn_output_bias),
                       .in = has_gate ? Act::count : Act::attn,
                       .activated = {.kind = ActivationKind::sigmoid, .gate = Act::gate, .up = Act::attn},
                       .post_norm = norm_of(pass, w, Role::attn_post_norm),
                       .scale = layer.spec.residual_scale});
}

std::span<const Act> leaves(const LayerSpec& layer) {
  static constexpr std::array kLeaves{Act::q, Act::gate};
  return std::span(kLeaves).first(layer.output_gate == OutputGate::none ? 1 : 2);
}

void make_room(const ModelSpec&, const LayerSpec& layer, backend::WorkspaceShape& shape) {
  make_room_for_attention(layer, shape);
  widen(shape, Act::k, std::uint64_t{layer.n_kv_heads} * layer.key_dim);
  widen(shape, Act::v, std::uint64_t{layer.n_kv_heads} * layer.value_dim);
  if (layer.output_gate != OutputGate::none) widen(shape, Act::gate, std::uint64_t{layer.n_heads} * layer.value_dim);
}

}  // namespace attention
}  // namespace

constexpr MixerBlock kAttention{attention::remember, attention::look_back, attention::leaves, attention::make_room,
                                attention::shape_of};

}  // namespace tessera::detail
