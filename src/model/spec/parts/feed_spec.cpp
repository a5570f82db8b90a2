#include "model/spec/parts/feed_spec.hpp"

#include <algorithm>

namespace tessera::detail {

namespace {

constexpr std::uint32_t kMostExperts = 4096;  // limit for n_experts: ten times the number in real models
constexpr std::uint32_t kMostUsed = 64;       // limit for the experts chosen for a row; the cost of a choice grows with it
constexpr std::uint32_t kMostGroups = 64;

Status read_groups(const SettingReader& from, LayerSpec& layer) {
  TESSERA_TRY(const std::uint64_t groups, from.settings.unsigned_integer_or(Setting::n_expert_groups, 1));
  TESSERA_TRY(const std::uint64_t used, from.settings.unsigned_integer_or(Setting::n_used_expert_groups, groups));
  if (groups <= 1) return {};
  if (groups > kMostGroups || layer.n_experts % groups != 0 || used == 0 || used > groups || layer.n_used > used * (layer.n_experts / groups)) {
    return from.corrupt(Setting::n_expert_groups, "{} of {} experts from {} of {} groups cannot be", layer.n_used, layer.n_experts, used,
                        groups);
  }
  layer.n_groups = static_cast<std::uint32_t>(groups);
  layer.n_used_groups = static_cast<std::uint32_t>(used);
  return {};
}

Status read_routing(const SettingReader& from, LayerSpec& layer) {
  TESSERA_TRY(const std::uint64_t kind, from.settings.unsigned_integer_or(Setting::expert_routing, 0));
  switch (kind) {  // llama.cpp's numbers
    case 0: layer.routing = from.table.experts.routing; break;
    case 1: layer.routing = RoutingKind::softmax; break;
    case 2: layer.routing = RoutingKind::sigmoid; break;
    case 3: layer.routing = RoutingKind::chosen_softmax; break;
    default:
      return from.unsupported(Setting::expert_routing,
                              "the value is {}; 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) are implemented", kind);
  }
  const bool usual = from.table.experts.renormalise == Renormalise::yes;
  TESSERA_TRY(const bool renormalises, from.settings.boolean_or(Setting::renormalise_experts, usual));
  layer.renormalise = renormalises ? Renormalise::yes : Renormalise::no;
  TESSERA_TRY(const double scale, from.positive_or_none(Setting::expert_scale, 1.0));
  layer.expert_scale = scale == 0.0 ? 1.0f : static_cast<float>(scale);
  return read_groups(from, layer);
}

// Reads the size of the shared experts, which compute every row in addition to the row's chosen experts.
Status read_shared_experts(const SettingReader& from, LayerSpec& layer) {
  TESSERA_TRY(const std::uint64_t n_shared, from.settings.unsigned_integer_or(Setting::n_shared_experts, 0));
  const std::uint64_t usual = std::min<std::uint64_t>(n_shared, kMostExperts) * layer.ffn_dim;
  TESSERA_TRY(const std::uint64_t shared, from.settings.unsigned_integer_or(Setting::shared_expert_dim, usual));
  if (shared != 0) {
    TESSERA_TRY(layer.shared_dim, from.to_count(Setting::shared_expert_dim, shared));
  }
  return {};
}

Status read_experts(const SettingReader& from, LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers) {
  layer.ffn = from.table.experts.ffn;
  TESSERA_TRY(layer.n_experts, from.count(Setting::n_experts));
  TESSERA_TRY(layer.n_used, from.layer_count(Setting::n_used_experts, index, n_layers));
  if (layer.n_used > layer.n_experts || layer.n_used > kMostUsed || layer.n_experts > kMostExperts) {
    return from.corrupt(Setting::n_used_experts, "{} of {} experts; expected at most {} of {}", layer.n_used, layer.n_experts,
                        std::min(layer.n_experts, kMostUsed), kMostExperts);
  }
  TESSERA_TRY(const std::uint64_t width, from.settings.unsigned_integer_or(Setting::expert_width, 0));
  if (width != 0) {
    TESSERA_TRY(layer.expert_width, from.to_count(Setting::expert_width, width));
  }
  const bool has_own_dim = from.settings.has(Setting::expert_dim);
  TESSERA_TRY(layer.ffn_dim, from.layer_count(has_own_dim ? Setting::expert_dim : Setting::ffn_dim, index, n_layers));
  if (layer.ffn == Ffn::dense_and_experts) {
    TESSERA_TRY(layer.shared_dim, from.layer_count(Setting::ffn_dim, index, n_layers));
  } else {
    TESSERA_TRY_STATUS(read_shared_experts(from, layer));
  }
  return read_routing(from, layer);
}

}  // namespace

Status read_feed(const SettingReader& from, LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers) {
  layer.ffn = from.table.ffn;
  TESSERA_TRY(const std::uint64_t n_experts, from.settings.unsigned_integer_or(Setting::n_experts, 0));
  TESSERA_TRY(const std::uint64_t dense, from.settings.unsigned_integer_or(Setting::n_dense_layers, 0));
  if (n_experts != 0 && from.table.experts.some && index >= dense) return read_experts(from, layer, index, n_layers);
  TESSERA_TRY(layer.ffn_dim, from.layer_count(Setting::ffn_dim, index, n_layers));
  return {};
}

}  // namespace tessera::detail
