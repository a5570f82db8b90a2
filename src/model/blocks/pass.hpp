// Pass is the context of one step's computation: the model, the backend and the step. All blocks get it. Below are operations that blocks
// share.
#pragma once

#include <optional>
#include <span>

#include "backend/backend.hpp"
#include "model/forward.hpp"
#include "model/model.hpp"

namespace tessera::detail {

struct Pass {
  const Model& model;
  backend::Backend& backend;
  const Step& step;
};

// Describes what a block's first products read. With a norm: the norm of the residual stream x, which is computed into `act`. Without a
// norm: the contents of `act`.
struct Input {
  std::optional<backend::Norm> norm;
  backend::Act act;
};

// Returns the norm that has these weights; nullopt if the model does not have `weight`.
[[nodiscard]] std::optional<backend::Norm> norm_of(const Pass& pass, const Weights& weights, Role weight, Role bias = Role::count);

// Computes out = W input (+ bias) for each part. A part names its matrix, its bias and its output.
Status products(const Pass& pass, const Input& input, std::span<const backend::LinearPart> parts);

// Makes an activation of the workspace at least `columns` wide.
void widen(backend::WorkspaceShape& shape, backend::Act act, std::uint64_t columns) noexcept;
// Makes the workspace large enough for this layer's attention. Widens the activations of queries and of attention's output, and raises
// the workspace's maxima of heads, of query heads for each KV head, and of head dimensions.
void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept;

// Multiplies each row of Act::q by the factor for the row's position. Does nothing in models whose queries do not grow with the position.
Status grow_queries(const Pass& pass);
// Computes the layer's attention: Act::attn = attention of the queries in Act::q. If rows vote for a token budget, the attention of layers
// that see all keys counts as votes. Exception: if every layer has a window, the attention of all layers counts.
Status attend(const Pass& pass, const Layer& layer, backend::AttentionShape shape);

// A term that a block adds to the residual stream: scale * post_norm(W in + bias), where W is `weight`. If `activated` is set, `activated`
// replaces `in`.
struct Branch {
  const backend::Matrix& weight;
  const backend::Vector* bias = nullptr;  // nullptr: no bias
  backend::Act in = backend::Act::count;  // Act::count: `activated` is the input instead
  backend::Activated activated = {};
  std::optional<backend::Norm> post_norm = {};
  float scale = 1.0f;
};

// Adds the branch's term to the residual stream x. Blocks change x only by this function or by rejoin_linear(), which is for a product that
// is already computed.
Status rejoin(const Pass& pass, const Branch& branch);
// Computes x += scale * post_norm(Act::linear), or x += scale * Act::linear if there is no post_norm.
Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale);

}  // namespace tessera::detail
