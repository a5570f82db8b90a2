// The settings of a model's folder, which are collected from several JSON files when the folder is opened.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail::hub {

class HubSettings final : public Settings {
 public:
  // A setting's value. A list of flags has a byte for each.
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int32_t>, std::vector<float>,
                             std::vector<std::uint8_t>>;

  // Sets a setting. `key`: the setting's place in the folder, for errors: a key of config.json ("hidden_size"), or another file and its key
  // ("tokenizer_config.json: bos_token").
  void set(Setting setting, Value value, std::string_view key);
  void remove(Setting setting) noexcept;
  // For an error message: records where a setting that the folder may lack would be (`key`). If the setting is needed later and was not
  // set, the error names this key. Does not change a setting that is set.
  void expect(Setting setting, std::string_view key);
  // Records that the folder has a key for the setting.
  void mark_stated(Setting setting) noexcept;
  // Returns the keys given to expect() whose settings decide shapes and which config.json lacks, separated by commas.
  [[nodiscard]] std::string absent_sizes() const;
  void set_origin(std::string folder) { origin_ = std::move(folder); }

  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
  [[nodiscard]] std::string called(Setting setting) const override;
  [[nodiscard]] std::string place(Setting setting) const override;
  [[nodiscard]] std::string origin() const override { return origin_; }

  // Adds a chat template with a name, for chat_template(name). (The template without a name is a setting.)
  void add_template(std::string name, std::string text) { templates_.emplace_back(std::move(name), std::move(text)); }
  [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override;

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // bytes of memory that the texts and lists take

 private:
  struct Entry {
    Value value;
    std::string key;
    std::string absent;      // the key given to expect() that the folder lacks
    bool is_stated = false;  // the folder has a key for the setting; false: the value is a default
  };
  std::array<Entry, kSettings> entries_;
  std::vector<std::pair<std::string, std::string>> templates_;
  std::string origin_;
};

}  // namespace tessera::detail::hub
