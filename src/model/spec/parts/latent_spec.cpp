#include "model/spec/parts/latent_spec.hpp"

#include <cmath>

#include "core/math.hpp"

namespace tessera::detail {

namespace {

// Returns a number whose square is a further factor of the scores of latent attention. The number is 1 in most models. Exception: a model
// that has YaRN and Setting::yarn_log_multiplier. There the number is m * ln(f) + 1, where m is this setting (already multiplied by 0.1 by
// the converter) and f is YaRN's scaling factor. Because this number makes the scores larger, YaRN's magnitude must not do so too: in such
// a model, the function sets `rope.magnitude` back to Setting::rope_magnitude (usually 1), unless the file states YaRN's magnitude.
Result<double> growth_of_scores(const SettingReader& from, RopeSpec& rope) {
  TESSERA_TRY(const auto type, from.settings.string_or(Setting::rope_scaling, ""));
  TESSERA_TRY(const double multiplier, from.settings.number_or(Setting::yarn_log_multiplier, 0.0));
  if (type != "yarn" || multiplier == 0.0) return 1.0;
  if (!from.settings.has(Setting::yarn_magnitude)) {
    TESSERA_TRY(const double magnitude, from.settings.number_or(Setting::rope_magnitude, 1.0));
    rope.magnitude = static_cast<float>(magnitude);
  }
  return rope.linear_factor > 1.0 ? multiplier * math::log(rope.linear_factor) + 1.0 : 1.0;
}

Status read_heads(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(const std::uint32_t head, from.count(Setting::latent_key_dim));
  TESSERA_TRY(const std::uint32_t value, from.count(Setting::latent_value_dim));
  TESSERA_TRY(const std::uint32_t rank, from.count(Setting::latent_rank));
  TESSERA_TRY(const std::uint64_t query_rank, from.settings.unsigned_integer_or(Setting::query_rank, 0));
  if (query_rank > SettingReader::kMostCount) return from.corrupt(Setting::query_rank, "the value is {}", query_rank);
  TESSERA_TRY(const double growth, growth_of_scores(from, spec.ropes.front()));
  const std::uint32_t turned = spec.ropes.front().dim;
  if (head <= turned) {
    return from.corrupt(Setting::latent_key_dim, "of {} elements {} rotate; expected some that do not", head, turned);
  }
  for (LayerSpec& layer : spec.layers) {
    if (layer.n_kv_heads != 1 || layer.value_dim != rank || layer.key_dim != std::uint64_t{rank} + turned) {
      return from.corrupt(Setting::key_dim,
                          "{} KV heads with keys of {} and values of {}; a latent of {} elements, and {} that rotate, make 1 head with keys of {} and values of {}",
                          layer.n_kv_heads, layer.key_dim, layer.value_dim, rank, turned, std::uint64_t{rank} + turned, rank);
    }
    layer.plain_dim = head - turned;
    layer.head_value_dim = value;
    layer.query_rank = static_cast<std::uint32_t>(query_rank);
    if (!from.settings.has(Setting::score_scale)) layer.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head)));
    layer.scale = static_cast<float>(static_cast<double>(layer.scale) * growth * growth);
  }
  return {};
}

// Corrects the routing of layers with experts. If the file does not state the kind of routing, and the layer has a bias for the choice, the
// experts' scores are sigmoids. If the scores are a softmax, the architecture's table says how groups of experts are scored.
Status correct_routing(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(const std::uint64_t said, from.settings.unsigned_integer_or(Setting::expert_routing, 0));
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (layer.ffn != Ffn::experts) continue;
    if (said == 0 && from.has_tensor(Role::choice_bias, i)) layer.routing = RoutingKind::sigmoid;
    if (layer.routing == RoutingKind::softmax) layer.group_score = from.table.experts.softmax_groups;
  }
  return {};
}

}  // namespace

Status read_latent(const SettingReader& from, ModelSpec& spec) {
  if (!from.table.is_latent) return {};
  if (!from.settings.has(Setting::latent_key_dim)) {
    return from.unsupported(Setting::latent_key_dim,
                            "the file has none: its attention is as converters wrote it before they split attn_kv_b; convert the model again");
  }
  TESSERA_TRY_STATUS(read_heads(from, spec));
  return correct_routing(from, spec);
}

}  // namespace tessera::detail
