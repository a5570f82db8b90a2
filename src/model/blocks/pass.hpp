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

// The input of a block's first products: `act` as it is, or with a norm x behind the norm, which is written to `act`.
struct Input {
  std::optional<backend::Norm> norm;
  backend::Act act;
};

// Returns the norm with these weights; none if there is no weight.
[[nodiscard]] std::optional<backend::Norm> norm_of(const Pass& pass, const Weights& weights, Role weight, Role bias = Role::count);

// Each part: out = W input (+ bias).
Status products(const Pass& pass, const Input& input, std::span<const backend::LinearPart> parts);

// Makes an activation at least `columns` wide.
void widen(backend::WorkspaceShape& shape, backend::Act act, std::uint64_t columns) noexcept;
// Adds the sizes of attention(), of queries and of its output to the shape of the workspace.
void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept;

// Multiplies Act::q by a factor of each row's position, in models whose queries grow.
Status grow_queries(const Pass& pass);
// Returns whether rows vote in this layer: only layers that see all keys count, or all layers if every one has a window.
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

// x += branch. Blocks add to the residual stream only by this function or, if the term is in Act::linear already, by rejoin_linear().
Status rejoin(const Pass& pass, const Branch& branch);
// x += scale * post_norm(Act::linear); without post_norm scale * Act::linear.
Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale);

}  // namespace tessera::detail
