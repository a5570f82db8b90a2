#include "model/blocks/pass.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::detail {

using backend::Act;

std::optional<backend::Norm> norm_of(const Pass& pass, const Weights& weights, Role weight, Role bias) {
  const backend::Vector* vector = weights.vector(weight);
  if (vector == nullptr) return std::nullopt;
  return backend::Norm{.kind = pass.model.spec.norm,
                       .weight = vector,
                       .bias = bias != Role::count ? weights.vector(bias) : nullptr,
                       .eps = pass.model.spec.norm_eps};
}

Status products(const Pass& pass, const Input& input, std::span<const backend::LinearPart> parts) {
  return input.norm ? pass.backend.norm_linear_group(*input.norm, Act::x, input.act, parts)
                    : pass.backend.linear_group(parts, input.act);
}

void widen(backend::WorkspaceShape& shape, Act act, std::uint64_t columns) noexcept {
  std::uint64_t& at = shape.columns[static_cast<std::size_t>(act)];
  at = std::max(at, columns);
}

void make_room_for_attention(const LayerSpec& layer, backend::WorkspaceShape& shape) noexcept {
  widen(shape, Act::q, std::uint64_t{layer.n_heads} * layer.key_dim);
  widen(shape, Act::attn, std::uint64_t{layer.n_heads} * layer.value_dim);
  shape.max_heads = std::max(shape.max_heads, layer.n_heads);
  shape.max_group = std::max(shape.max_group, layer.n_heads / layer.n_kv_heads);
  shape.max_key_dim = std::max(shape.max_key_dim, layer.key_dim);
  shape.max_value_dim = std::max(shape.max_value_dim, layer.value_dim);
}

Status grow_queries(const Pass& pass) {
  const ModelSpec& spec = pass.model.spec;
  if (spec.temperature_rate == 0.0) return {};
  return pass.backend.scale_by_position(spec.temperature_rate, spec.temperature_length, Act::q);
}

Status attend(const Pass& pass, const Layer& layer, backend::AttentionShape shape) {
  shape.counts_votes =
      !pass.step.votes.empty() &&
      (layer.spec.window == 0 || std::ranges::none_of(pass.model.spec.layers, [](const LayerSpec& other) {
         return other.mixer == Mixer::attention && other.window == 0;
       }));
  return pass.backend.attention(shape, Act::q, Act::attn);
}

Status rejoin(const Pass& pass, const Branch& branch) {
  backend::Backend& b = pass.backend;
  const bool activates = branch.in == Act::count;
  if (!branch.post_norm && branch.scale == 1.0f) {
    return activates ? b.activated_linear_residual(branch.activated, branch.weight, branch.bias, Act::linear, Act::x)
                     : b.linear_residual(branch.weight, branch.bias, branch.in, Act::linear, Act::x);
  }
  TESSERA_TRY_STATUS(activates ? b.activated_linear(branch.activated, branch.weight, branch.bias, Act::linear)
                               : b.linear_bias(branch.weight, branch.bias, branch.in, Act::linear));
  return rejoin_linear(pass, branch.post_norm, branch.scale);
}

Status rejoin_linear(const Pass& pass, const std::optional<backend::Norm>& post_norm, float scale) {
  backend::Backend& b = pass.backend;
  if (post_norm) TESSERA_TRY_STATUS(b.norm(*post_norm, Act::linear, Act::linear));
  if (scale != 1.0f) TESSERA_TRY_STATUS(b.scale(scale, Act::linear));
  return b.add(Act::linear, Act::x);
}

}  // namespace tessera::detail
