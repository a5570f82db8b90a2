#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

Result<std::uint32_t> SettingReader::to_count(Setting setting, std::uint64_t value, std::uint64_t most) const {
  if (value != 0 && value <= most) return static_cast<std::uint32_t>(value);
  return corrupt(setting, "the value is {}; expected 1 to {}", value, most);
}

Result<std::uint32_t> SettingReader::count(Setting setting, std::uint64_t most) const {
  TESSERA_TRY(const std::uint64_t value, settings.unsigned_integer(setting));
  return to_count(setting, value, most);
}

Result<std::uint32_t> SettingReader::layer_count(Setting setting, std::uint32_t layer, std::uint32_t n_layers) const {
  if (!settings.has_list(setting)) return count(setting);
  TESSERA_TRY(const ValueList list, settings.list(setting));
  if (!list.is_integer() || list.size() < n_layers) {
    return corrupt(setting, "expected an array of {} integers, one per layer", n_layers);
  }
  const std::int64_t value = list.integer(layer);
  return to_count(setting, value < 0 ? 0 : static_cast<std::uint64_t>(value));
}

Result<std::uint64_t> SettingReader::layer_number(Setting setting, std::uint32_t layer, std::uint32_t n_layers, std::uint64_t absent) const {
  if (!settings.has_list(setting)) return settings.unsigned_integer_or(setting, absent);
  TESSERA_TRY(const ValueList list, settings.list(setting));
  if (!list.is_integer() || list.size() != n_layers || list.integer(layer) < 0) {
    return corrupt(setting, "expected an array of {} numbers from 0 on, one per layer", n_layers);
  }
  return static_cast<std::uint64_t>(list.integer(layer));
}

Result<double> SettingReader::positive(Setting setting, double usual) const {
  constexpr double kLeast = 0x1p-64, kMost = 0x1p64;
  TESSERA_TRY(const double value, settings.number_or(setting, usual));
  if (value >= kLeast && value <= kMost) return value;
  return corrupt(setting, "the value is {}; expected a positive number, {:.2g} to {:.2g}", value, kLeast, kMost);
}

Result<double> SettingReader::positive_or_none(Setting setting, double usual) const {
  TESSERA_TRY(const double value, settings.number_or(setting, usual));
  return value == 0.0 ? Result<double>(0.0) : positive(setting, usual);
}

Result<float> SettingReader::softcap(Setting setting, double usual) const {
  TESSERA_TRY(const double cap, positive_or_none(setting, usual));
  return static_cast<float>(cap);
}

Result<std::uint32_t> SettingReader::original_context(std::uint32_t context) const {
  TESSERA_TRY(const std::uint64_t value, settings.unsigned_integer_or(Setting::original_context, context));
  return to_count(Setting::original_context, value);
}

}  // namespace tessera::detail
