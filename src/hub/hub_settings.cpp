#include "hub/hub_settings.hpp"

#include <type_traits>

#include "core/error.hpp"

namespace tessera::detail::hub {

void HubSettings::set(Setting setting, Value value, std::string_view key) {
  Entry& entry = entries_[static_cast<std::size_t>(setting)];
  entry.value = std::move(value);
  entry.key = key;
}

void HubSettings::expect(Setting setting, std::string_view key) {
  Entry& entry = entries_[static_cast<std::size_t>(setting)];
  if (entry.key.empty()) entry.key = key;
  if (!entry.is_stated) entry.absent = key;
}

void HubSettings::mark_stated(Setting setting) noexcept {
  Entry& entry = entries_[static_cast<std::size_t>(setting)];
  entry.is_stated = true;
  entry.absent.clear();
}

std::string HubSettings::absent_sizes() const {
  std::string keys;
  for (const Setting setting : {Setting::d_model, Setting::n_heads, Setting::n_kv_heads, Setting::key_dim, Setting::value_dim, Setting::ffn_dim,
                                Setting::n_experts, Setting::expert_dim, Setting::vocab_size, Setting::context}) {
    const std::string& key = entries_[static_cast<std::size_t>(setting)].absent;
    if (key.empty() || (", " + keys + ",").find(", " + key + ",") != std::string::npos) continue;
    keys.append(keys.empty() ? "" : ", ").append(key);
  }
  return keys;
}

void HubSettings::remove(Setting setting) noexcept { entries_[static_cast<std::size_t>(setting)].value = std::monostate(); }

std::optional<SettingValue> HubSettings::find(Setting setting) const noexcept {
  if (setting >= Setting::count) return std::nullopt;
  return std::visit(
      []<class T>(const T& value) -> std::optional<SettingValue> {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return std::nullopt;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return std::string_view(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::uint8_t>>) {
          return ValueList(ValueType::boolean, value.size(), std::as_bytes(std::span(value)));
        } else if constexpr (std::is_same_v<T, std::vector<std::int32_t>> || std::is_same_v<T, std::vector<float>>) {
          return ValueList(std::span(value));
        } else {
          return value;
        }
      },
      entries_[static_cast<std::size_t>(setting)].value);
}

std::string HubSettings::called(Setting setting) const {
  const std::string* key = setting < Setting::count ? &entries_[static_cast<std::size_t>(setting)].key : nullptr;
  return key == nullptr || key->empty() ? std::string(to_string(setting)) : *key;
}

std::string HubSettings::place(Setting setting) const {
  const std::string name = called(setting);
  return name.find(".json") != std::string::npos ? name : fmt::format("config.json: {}", name);
}

std::optional<std::string_view> HubSettings::chat_template(std::string_view name) const noexcept {
  for (const auto& [own, text] : templates_) {
    if (own == name) return text;
  }
  return Settings::chat_template(name);
}

std::uint64_t HubSettings::memory_bytes() const noexcept {
  std::uint64_t bytes = sizeof *this;
  for (const Entry& entry : entries_) {
    bytes += entry.key.capacity() + entry.absent.capacity();
    bytes += std::visit(
        []<class T>(const T& value) -> std::uint64_t {
          if constexpr (requires { value.capacity(); }) {
            return value.capacity() * sizeof(typename T::value_type);
          } else {
            return 0;
          }
        },
        entry.value);
  }
  for (const auto& [name, text] : templates_) bytes += name.capacity() + text.capacity();
  return bytes;
}

}  // namespace tessera::detail::hub
