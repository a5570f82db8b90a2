// Declares Pass, the context of one step's computation, which every block of a layer gets (model, backend and step), and the operations
// that several blocks use.
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

// The input of a block's first products. If `norm` is set: the norm of the residual stream x; the products compute it and write it to
// `act`. If `norm` is not set: the contents of `act`.
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
// Makes the workspace large enough for this layer's attention: the width of queries and of attention's output, and the largest number of
// heads, of query heads for each KV head, and of dimensions of a head.
void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept;

// Multiplies each row of Act::q by the factor for the row's position. Does nothing in models whose queries do not grow with the position.
Status grow_queries(const Pass& pass);
// Computes the layer's attention: Act::attn = attention of the queries in Act::q. If rows of the step vote for a token budget, also
// counts their votes in layers without a window. Exception: if every layer has a window, counts them in all layers.
Status attend(const Pass& pass, const Layer& layer, backend::AttentionShape shape);

// A term that a block adds to the residual stream: scale * post_norm(W input + bias), where W is `weight`. The input is the activation
// `in`. Exception: if `in` is Act::count, the input is the result of an activation function, which `activated` describes.
struct Branch {
  const backend::Matrix& weight;
  const backend::Vector* bias = nullptr;  // nullptr: no bias
  backend::Act in = backend::Act::count;  // Act::count: `activated` is the input instead
  backend::Activated activated = {};
  std::optional<backend::Norm> post_norm = {};
  float scale = 1.0f;
};

// Computes the branch's product, and adds the term to the residual stream x. If the product is computed already, call rejoin_linear()
// instead. Blocks change x only by these two functions.
Status rejoin(const Pass& pass, const Branch& branch);
// Computes x += scale * post_norm(Act::linear), or x += scale * Act::linear if there is no post_norm.
Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale);

}  // namespace tessera::detail
