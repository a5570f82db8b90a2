#include "engine/load/metadata.hpp"

#include <algorithm>
#include <type_traits>

namespace tessera::detail {

namespace {

constexpr std::size_t kLongest = std::size_t{1} << 20;

bool is_kept(const SettingValue& value) noexcept {
  const auto* text = std::get_if<std::string_view>(&value);
  return !std::holds_alternative<ValueList>(value) && (text == nullptr || text->size() <= kLongest);
}

std::string_view text_of(const SettingValue& value) noexcept {
  const auto* text = std::get_if<std::string_view>(&value);
  return text == nullptr ? std::string_view() : *text;
}

// Returns whether two values have the same type and are equal. Precondition: neither is a list.
bool same(const SettingValue& a, const SettingValue& b) noexcept {
  return std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, ValueList>) return false;
        else return std::holds_alternative<T>(b) && std::get<T>(b) == value;
      },
      a);
}

// Calls `keep(name, value)` for each key of the file that an engine keeps: keys whose value is a number or a short string.
template <class Keep>
void for_each_key(const Settings& settings, const Keep& keep) {
  std::optional<FileKey> key;
  for (std::size_t i = 0; (key = settings.file_key(i)); ++i) {
    if (is_kept(key->value)) keep(key->name, key->value);
  }
}

// Calls `keep(setting, name, value)` for each setting that an engine keeps: settings whose value is a number or a short string.
template <class Keep>
void for_each_setting(const Settings& settings, const Keep& keep) {
  for (std::size_t i = 0; i < kSettings; ++i) {
    const auto setting = static_cast<Setting>(i);
    const std::optional<SettingValue> value = settings.find(setting);
    if (value && is_kept(*value)) keep(setting, settings.called(setting), *value);
  }
}

// Returns whether the file has a key with this name and this value, so that the setting is already listed as a key. The name alone is not
// enough: a source may call a setting by the name of a key of the file that has another meaning and value.
bool has_key(const Settings& settings, std::string_view name, const SettingValue& value) {
  const std::optional<SettingValue> of_key = settings.find_key(name);
  return of_key && same(*of_key, value);
}

}  // namespace

KeptSettings::Entry::Entry(std::string_view called, const SettingValue& from) : name(called), text(text_of(from)), value(from) {
  // The entry's `text` has a copy; this view points into the source's memory, which may be freed.
  if (std::holds_alternative<std::string_view>(value)) value = std::string_view();
}

KeptSettings::KeptSettings(const Settings& settings)
    : origin_(settings.origin()), template_name_(settings.called(Setting::chat_template)) {
  std::size_t count = 0;
  for_each_key(settings, [&](std::string_view, const SettingValue&) { ++count; });
  for_each_setting(settings, [&](Setting, const std::string& name, const SettingValue& value) { count += has_key(settings, name, value) ? 0 : 1; });
  entries_.reserve(count);
  for_each_key(settings, [&](std::string_view name, const SettingValue& value) {
    entries_.push_back(Entry(name, value));
  });
  n_file_keys_ = entries_.size();
  for_each_setting(settings, [&](Setting setting, const std::string& name, const SettingValue& value) {
    const auto file_keys = entries_.begin() + static_cast<std::ptrdiff_t>(n_file_keys_);
    auto at = std::find_if(entries_.begin(), file_keys, [&](const Entry& entry) { return entry.name == name && same(value_of(entry), value); });
    if (at == file_keys) at = entries_.insert(entries_.end(), Entry(name, value));
    of_settings_[static_cast<std::size_t>(setting)] = static_cast<std::uint32_t>(at - entries_.begin() + 1);
  });
}

SettingValue KeptSettings::value_of(const Entry& entry) noexcept {
  return std::holds_alternative<std::string_view>(entry.value) ? SettingValue(std::string_view(entry.text)) : entry.value;
}

std::optional<SettingValue> KeptSettings::find(Setting setting) const noexcept {
  const std::uint32_t at = setting < Setting::count ? of_settings_[static_cast<std::size_t>(setting)] : 0;
  return at == 0 ? std::nullopt : std::optional(value_of(entries_[at - 1]));
}

std::string KeptSettings::called(Setting setting) const {
  const std::uint32_t at = setting < Setting::count ? of_settings_[static_cast<std::size_t>(setting)] : 0;
  if (at != 0) return entries_[at - 1].name;
  return setting == Setting::chat_template ? template_name_ : Settings::called(setting);
}

std::string KeptSettings::origin() const { return origin_; }

std::optional<std::string_view> KeptSettings::chat_template(std::string_view name) const noexcept {
  if (name.empty()) return Settings::chat_template(name);
  for (const Entry& entry : entries_) {
    std::string_view key = entry.name;
    if (!key.starts_with(template_name_) || !key.ends_with(name) || key.size() != template_name_.size() + 1 + name.size()) continue;
    if (key[template_name_.size()] == '.' && std::holds_alternative<std::string_view>(entry.value)) return entry.text;
  }
  return std::nullopt;
}

std::optional<FileKey> KeptSettings::file_key(std::size_t index) const noexcept {
  if (index >= n_file_keys_) return std::nullopt;
  return FileKey{entries_[index].name, value_of(entries_[index])};
}

std::uint64_t metadata_bytes(const Settings& settings) {
  constexpr std::uint64_t kOfEntry = 256;  // an Entry, with the heap's overhead for its two strings
  std::uint64_t bytes = 4096 + settings.origin().size() + settings.called(Setting::chat_template).size();
  const auto add = [&](std::string_view name, const SettingValue& value) { bytes += kOfEntry + name.size() + text_of(value).size(); };
  for_each_key(settings, add);
  for_each_setting(settings, [&](Setting, const std::string& name, const SettingValue& value) {
    if (!has_key(settings, name, value)) add(name, value);
  });
  return bytes;
}

}  // namespace tessera::detail
