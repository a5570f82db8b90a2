// Settings with a tokenizer.json or a tokenizer.model, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/text/tokenizer.hpp>

namespace rig {

class FileSettings final : public tessera::Settings {
 public:
  explicit FileSettings(std::string_view json) : json_(json) {}
  FileSettings(tessera::Setting kind, std::string_view bytes) : json_(bytes), kind_(kind) {}
  FileSettings& set(tessera::Setting setting, tessera::SettingValue value) {
    others_[setting] = value;
    return *this;
  }
  [[nodiscard]] std::optional<tessera::SettingValue> find(tessera::Setting setting) const noexcept override {
    if (setting == kind_) return tessera::SettingValue(json_);
    const auto found = others_.find(setting);
    return found == others_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::string_view json_;
  tessera::Setting kind_ = tessera::Setting::tokenizer_json;
  std::map<tessera::Setting, tessera::SettingValue> others_;
};

inline tessera::Result<tessera::Tokenizer> load_json(std::string_view json) {
  return tessera::Tokenizer::from_settings(FileSettings(json));
}

}  // namespace rig
