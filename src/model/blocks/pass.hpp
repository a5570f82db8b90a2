// One step's way through a model: what all blocks see, and the steps that they share.
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

// What a block's first products read: an activation, or x after a norm of the block's own, which then passes through
// that activation.
struct Input {
  std::optional<backend::Norm> norm;
  backend::Act act;
};

// The norm of these weights, or none if there is no weight.
[[nodiscard]] std::optional<backend::Norm> norm_of(const Pass& pass, const Weights& weights, Role weight, Role bias = Role::count);

// Each part: out = W (the input) (+ bias).
Status products(const Pass& pass, const Input& input, std::span<const backend::LinearPart> parts);

// Makes an activation at least `columns` wide.
void widen(backend::WorkspaceShape& shape, backend::Act act, std::uint64_t columns) noexcept;
// Adds what attention() itself takes, and queries and output, to the shape of the workspace.
void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept;

// Act::q *= what its rows' positions say, in models whose queries grow.
Status grow_queries(const Pass& pass);
// Whether rows that vote do so in this layer: in those that see all keys, and where every layer has a window, in all.
[[nodiscard]] bool counts_votes(const Pass& pass, const Layer& layer) noexcept;

// What a block adds to the residual stream: W in, or W (the activated), with a bias, a norm of that, a scale.
struct Branch {
  const backend::Matrix& weight;
  const backend::Vector* bias = nullptr;  // or none
  backend::Act in = backend::Act::count;  // or none: `activated`
  backend::Activated activated = {};
  std::optional<backend::Norm> post_norm = {};
  float scale = 1.0f;
};

// x += the branch. The only way back into the residual stream, but for what is in Act::linear already.
Status rejoin(const Pass& pass, const Branch& branch);
// x += a norm of Act::linear, if there is one, times a scale.
Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale);

}  // namespace tessera::detail
