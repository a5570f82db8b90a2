#include "model/spec/refused_settings.hpp"

namespace tessera::detail {

namespace {

// A setting that changes results, and a test whether the architecture reads the setting. If the architecture does not read the setting, a
// file that has it is refused.
struct Refused {
  Setting setting;
  double neutral;  // the value that changes nothing. Files with this value or 0 are not refused
  bool (*is_read)(const Architecture& table) noexcept;
};

constexpr auto kNever = [](const Architecture&) noexcept { return false; };
constexpr auto kOfExperts = [](const Architecture& table) noexcept { return table.experts.some; };
constexpr auto kOfScales = [](const Architecture& table) noexcept { return table.scales == Scales::in_metadata; };

constexpr Refused kRefused[] = {
    {Setting::max_alibi_bias, 0, kNever},
    {Setting::clamp_kqv, 0, kNever},
    {Setting::moe_every_n_layers, 1, kNever},
    {Setting::interleave_moe_layer_step, 1, kNever},
    {Setting::n_experts, 0, kOfExperts},
    {Setting::n_used_experts, 0, kOfExperts},
    {Setting::expert_width, 0, [](const Architecture& table) noexcept { return table.tensors[Role::experts_in] != Presence::absent; }},
    {Setting::temperature_scale, 0, [](const Architecture& table) noexcept { return table.has_temperature; }},
    {Setting::n_further_layers, 0, [](const Architecture& table) noexcept { return table.guesses_further; }},
    {Setting::shared_kv_layers, 0, [](const Architecture& table) noexcept { return table.shares_keys; }},
    {Setting::per_layer_dim, 0, [](const Architecture& table) noexcept { return table.has_per_layer_inputs; }},
    {Setting::embedding_scale, 1, kOfScales},
    {Setting::residual_scale, 1, kOfScales},
    {Setting::logit_scale, 1, [](const Architecture& table) noexcept { return kOfScales(table) || table.scales == Scales::logits; }},
    {Setting::window_pattern, 0, [](const Architecture& table) noexcept { return table.windows.period != 0; }},
    {Setting::windowed_rope_theta, 0, [](const Architecture& table) noexcept { return table.windows.rope == WindowedRope::unscaled; }},
};

}  // namespace

Status refuse_unsupported(const SettingReader& from) {
  for (const Refused& row : kRefused) {
    if (row.is_read(from.table) || !from.settings.has(row.setting)) continue;
    TESSERA_TRY(const double value, from.settings.number(row.setting));
    if (value == row.neutral || value == 0.0) continue;
    return from.unsupported(row.setting, "tessera does not implement this setting (value {})", value);
  }
  TESSERA_TRY(const bool causal, from.settings.boolean_or(Setting::causal, true));
  if (causal == !from.table.encodes || !from.settings.has(Setting::causal)) return {};
  return from.unsupported(Setting::causal, "tessera does not implement this architecture with {}", causal ? "causal attention" : "attention to both sides");
}

}  // namespace tessera::detail
