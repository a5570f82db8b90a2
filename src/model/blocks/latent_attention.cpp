#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace latent {

// Epsilon of the norms of latents. The authors' code has this value even if the model's other norms have another epsilon.
constexpr float kLatentEps = 1e-6f;

// MixerBlock::remember() of latent attention. Computes the step's keys, and writes them to the pages; computes the queries, which stay in
// Act::q. A query or key consists of a turned part, which rope rotates, and a plain part, which rope does not change. Intermediate
// results:
// - Act::gate: the plain parts of the queries of all heads
// - Act::attn: these plain parts times latent_k_b, so that they can be multiplied with latents instead of plain keys
// - Act::up: the turned parts of the queries
// - Act::v: the turned part of the key
// - Act::k: the latent
Status remember(const Pass& pass, const Layer& layer, const Input& input) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  const std::array queries{
      backend::LinearPart{w.matrix(Role::latent_q_plain), nullptr, Act::gate},
      backend::LinearPart{w.matrix(Role::latent_q_turned), nullptr, Act::up},
  };
  const backend::LinearPart latent{w.matrix(Role::latent_kv), nullptr, Act::k}, turned{w.matrix(Role::latent_k_turned), nullptr, Act::v};
  if (layer.spec.query_rank == 0) {
    TESSERA_TRY_STATUS(products(pass, input, std::array{queries[0], queries[1], latent, turned}));
  } else {
    const backend::LinearPart low{w.matrix(Role::latent_q_a), nullptr, Act::linear};
    TESSERA_TRY_STATUS(products(pass, input, std::array{low, latent, turned}));
    const backend::Norm norm{.kind = NormKind::rms, .weight = w.vector(Role::latent_q_a_norm), .eps = kLatentEps};
    TESSERA_TRY_STATUS(b.norm(norm, Act::linear, Act::linear));
    TESSERA_TRY_STATUS(b.linear_group(queries, Act::linear));
  }
  TESSERA_TRY_STATUS(b.head_linear(*w.matrix(Role::latent_k_b), Act::gate, Act::attn));
  TESSERA_TRY_STATUS(b.latent_append({.layer = layer.index,
                                      .n_heads = layer.spec.n_heads,
                                      .norm = w.vector(Role::latent_kv_norm),
                                      .eps = kLatentEps,
                                      .rope = layer.spec.rope},
                                     Act::up, Act::attn, Act::v, Act::k, Act::q));
  return grow_queries(pass);
}

backend::AttentionShape shape_of(const Layer& layer) {
  return {.layer = layer.index, .n_heads = layer.spec.n_heads, .window = layer.spec.window, .scale = layer.spec.scale};
}

Status look_back(const Pass& pass, const Layer& layer) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  TESSERA_TRY_STATUS(attend(pass, layer, shape_of(layer)));
  TESSERA_TRY_STATUS(b.head_linear(*w.matrix(Role::latent_v_b), Act::attn, Act::gate));
  return rejoin(pass, {.weight = *w.matrix(Role::latent_output), .in = Act::gate, .scale = layer.spec.residual_scale});
}

std::span<const Act> leaves(const LayerSpec&) {
  static constexpr std::array kLeaves{Act::q};
  return kLeaves;
}

void make_room(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape) {
  make_room_for_attention(layer, shape);
  widen(shape, Act::k, std::uint64_t{layer.n_kv_heads} * layer.key_dim);
  widen(shape, Act::v, std::max(std::uint64_t{layer.n_kv_heads} * layer.value_dim, std::uint64_t{extent::turned(model, layer)}));
  widen(shape, Act::gate, std::max(extent::all_plain(model, layer), extent::head_values(model, layer)));
  widen(shape, Act::up, extent::all_turned(model, layer));
  widen(shape, Act::linear, layer.query_rank);
  shape.head_inputs = std::max<std::uint64_t>({shape.head_inputs, layer.plain_dim, layer.value_dim});
}

}  // namespace latent
}  // namespace

constexpr MixerBlock kLatentAttention{latent::remember, latent::look_back, latent::leaves, latent::make_room,
                                      latent::shape_of};

}  // namespace tessera::detail
