#include "hub/written/filling.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tessera::detail::hub {

void Filling::set(std::string_view key, Json value) {
  if (config_.whole().find(key) == nullptr) config_.whole().set(key, std::move(value));
}

void Filling::fill_integer(std::string_view key, Setting setting) {
  auto value = integer(setting);
  if (setting == Setting::window_pattern && model_.settings().has_list(setting)) return;  // layer_types has the list's flags
  if (!value && setting == Setting::vocab_size) value = spec.vocab_size;
  if (setting == Setting::key_dim && !value) value = usual_head_dim();
  if (setting == Setting::n_layers) value = spec.n_layers();  // without draft heads
  if (value) set(key, *value);
}

std::optional<std::int64_t> Filling::usual_head_dim() const noexcept {
  if (architecture.name == "falcon") return std::nullopt;  // Falcon's class computes the size
  for (const LayerSpec& layer : spec.layers) {
    if (layer.key_dim != 0) return layer.key_dim;
  }
  return std::nullopt;
}

void Filling::fill_number(std::string_view key, Setting setting) {
  if (const auto value = number(setting)) set_number(key, *value);
}

void Filling::fill_boolean(std::string_view key, Setting setting) {
  const auto value = model_.settings().find(setting);
  const auto* flag = value ? std::get_if<bool>(&*value) : nullptr;
  if (flag != nullptr) return set(key, *flag);
  // If the file does not state the setting, the architecture's default holds. transformers' class has another default, so the key is set.
  if (setting == Setting::renormalise_experts) set(key, architecture.experts.renormalise == Renormalise::yes);
}

Json Filling::number_json(double value) const {
  const auto narrow = static_cast<float>(value);
  if (digits_ == Digits::all || static_cast<double>(narrow) != value) return value;
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, narrow);
  double shortest = value;
  if (error == std::errc()) std::from_chars(text, end, shortest);
  return shortest;
}

std::vector<std::int64_t> Filling::list(Setting setting) const {
  const auto value = model_.settings().find(setting);
  std::vector<std::int64_t> numbers;
  if (!value) return numbers;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) numbers.push_back(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&*value); whole != nullptr && *whole <= std::numeric_limits<std::int32_t>::max()) {
    numbers.push_back(static_cast<std::int64_t>(*whole));
  }
  if (const auto* some = std::get_if<ValueList>(&*value); some != nullptr && some->is_integer()) {
    for (std::uint64_t i = 0; i < some->size(); ++i) numbers.push_back(some->integer(i));
  }
  return numbers;
}

std::optional<std::int64_t> Filling::integer(Setting setting) const noexcept {
  const std::vector<std::int64_t> numbers = list(setting);
  if (numbers.empty()) return std::nullopt;
  return *std::ranges::max_element(numbers);
}

std::optional<double> Filling::number(Setting setting) const noexcept {
  const auto value = model_.settings().number(setting);
  if (!value) return std::nullopt;
  return *value;
}

std::string Filling::text(Setting setting) const {
  const auto value = model_.settings().string(setting);
  return value ? std::string(*value) : std::string();
}

bool Filling::has_in_any_layer(Role role) const {
  for (std::uint32_t layer = 0; layer < spec.n_layers(); ++layer) {
    if (has(role, layer)) return true;
  }
  return false;
}

std::vector<float> Filling::values(Role role) const {
  const TensorInfo* info = model_.find_tensor(row_of(role).tensor_name());
  if (info == nullptr || info->dtype != DType::f32) return {};
  std::vector<float> numbers(info->bytes / sizeof(float));
  if (!model_.read(*info, 0, std::as_writable_bytes(std::span(numbers)))) numbers.clear();
  return numbers;
}

std::uint64_t Filling::rows(Role role) const {
  const TensorInfo* info = model_.find_tensor(row_of(role).tensor_name());
  return info == nullptr ? 0 : info->dims[1];
}

std::vector<bool> Filling::windowed_layers() const {
  const MixedWindows& usual = architecture.windows;
  const std::vector<std::int64_t> lengths = list(Setting::window), pattern = list(Setting::window_pattern);
  std::vector<bool> windowed;
  if (lengths.empty() && usual.length == 0) return windowed;
  const std::int64_t stated = pattern.size() == 1 && !model_.settings().has_list(Setting::window_pattern) ? pattern.front() : 0;
  const std::int64_t period = stated > 0 ? stated : usual.period;
  for (std::uint32_t layer = 0; layer < spec.n_layers(); ++layer) {
    const std::uint32_t number = usual.first_sees_all ? layer : layer + 1;
    if (lengths.size() > 1) windowed.push_back(layer < lengths.size() && lengths[layer] > 0);
    else if (usual.period != 0 && model_.settings().has_list(Setting::window_pattern)) windowed.push_back(layer < pattern.size() && pattern[layer] != 0);
    else windowed.push_back(usual.period == 0 || number % static_cast<std::uint32_t>(period) != 0);
  }
  if (std::ranges::find(windowed, true) == windowed.end()) windowed.clear();
  return windowed;
}

}  // namespace tessera::detail::hub
