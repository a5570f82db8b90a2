#include "hub/shape.hpp"

#include <algorithm>

namespace tessera::detail::hub {

namespace {

// Returns the value of a setting that is a count, such as the number of heads; 0 if the setting is absent. If the setting is a list with
// an element for each layer, returns the largest element: layers with heads all have the same number of heads, and layers without heads
// have 0.
std::uint64_t count_of_setting(const Settings& settings, Setting setting) noexcept {
  constexpr std::int64_t kMost = 1 << 24;
  const auto value = settings.find(setting);
  if (!value) return 0;
  std::int64_t count = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) count = *whole;
  if (const auto* whole = std::get_if<std::uint64_t>(&*value)) count = static_cast<std::int64_t>(std::min<std::uint64_t>(*whole, kMost));
  if (const auto* list = std::get_if<ValueList>(&*value); list != nullptr && list->is_integer()) {
    for (std::uint64_t i = 0; i < list->size(); ++i) count = std::max(count, list->integer(i));
  }
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(count, 0, kMost));
}

}  // namespace

Shape shape_of_model(const Settings& settings) noexcept {
  const auto count = [&](Setting setting) { return count_of_setting(settings, setting); };
  Shape shape;
  shape.heads = count(Setting::n_heads);
  shape.width = count(Setting::d_model);
  shape.kv_heads = count(Setting::n_kv_heads);
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  shape.state_groups = count(Setting::state_groups);
  shape.state_heads = count(Setting::state_heads);
  shape.state_keys = count(Setting::state_keys);
  shape.state_values = shape.state_heads == 0 ? 0 : count(Setting::state_columns) / shape.state_heads;
  shape.head_value_dim = count(Setting::latent_value_dim);
  const std::uint64_t keys = count(Setting::latent_key_dim), turned = count(Setting::rope_dim);
  shape.plain_dim = keys > turned ? keys - turned : 0;
  return shape;
}

}  // namespace tessera::detail::hub
