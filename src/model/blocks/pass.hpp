// One step's way through a model: the context of all blocks, and operations that they share.
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

// The input of a block's first products. Without a norm: `act` as it is. With a norm: the norm of x, which is written to `act`.
struct Input {
  std::optional<backend::Norm> norm;
  backend::Act act;
};

// Returns the norm with these weights; none if there is no weight.
[[nodiscard]] std::optional<backend::Norm> norm_of(const Pass& pass, const Weights& weights, Role weight, Role bias = Role::count);

// Computes out = W input (+ bias) for each part, which is a matrix with its output.
Status products(const Pass& pass, const Input& input, std::span<const backend::LinearPart> parts);

// Makes an activation at least `columns` wide in the shape of the workspace.
void widen(backend::WorkspaceShape& shape, backend::Act act, std::uint64_t columns) noexcept;
// Makes the workspace large enough for this layer's attention: widens the activations of queries and of attention's output, and raises the
// largest number of heads, group and head dimensions.
void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept;

// Multiplies Act::q by a factor of each row's position, in models whose queries grow.
Status grow_queries(const Pass& pass);
// Returns whether attention in this layer counts as votes for a token budget. Only layers that see all keys count. Exception: if every
// layer has a window, all layers count.
[[nodiscard]] bool counts_votes(const Pass& pass, const Layer& layer) noexcept;

// The term that a block adds to the residual stream: scale * post_norm(W in + bias), or with `activated` in place of `in`.
struct Branch {
  const backend::Matrix& weight;
  const backend::Vector* bias = nullptr;  // nullptr: none
  backend::Act in = backend::Act::count;  // Act::count: the input is `activated`
  backend::Activated activated = {};
  std::optional<backend::Norm> post_norm = {};
  float scale = 1.0f;
};

// Adds a branch: x += branch. Blocks add to the residual stream only by this function or, if the term is in Act::linear already, by
// rejoin_linear().
Status rejoin(const Pass& pass, const Branch& branch);
// Computes x += scale * post_norm(Act::linear); without post_norm x += scale * Act::linear.
Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale);

}  // namespace tessera::detail
