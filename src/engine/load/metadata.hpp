// What an engine keeps of its model's settings: numbers and strings, without the lists (the vocabulary's, megabytes).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

// Owns its values: the source may go. Strings over 1 MiB are left out, of settings and of the file's other keys.
class KeptSettings final : public Settings {
 public:
  explicit KeptSettings(const Settings& settings);
  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
  [[nodiscard]] std::string called(Setting setting) const override;
  [[nodiscard]] std::string origin() const override;
  // Finds templates of a name among the file's keys: "tokenizer.chat_template.tool_use".
  [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override;
  [[nodiscard]] std::optional<FileKey> file_key(std::size_t index) const noexcept override;

 private:
  struct Entry {
    Entry(std::string_view called, const SettingValue& from);
    std::string name;  // as the file has it
    std::string text;  // the value, if it is a string
    SettingValue value;
  };
  [[nodiscard]] static SettingValue value_of(const Entry& entry) noexcept;

  std::string origin_;
  std::string template_name_;    // how the file calls Setting::chat_template
  std::vector<Entry> entries_;   // the file's keys in its order, then settings that are not among them
  std::size_t n_file_keys_ = 0;  // the first of entries_
  std::array<std::uint32_t, kSettings> of_settings_{};  // index of each setting's entry, plus 1; 0: there is none
};

// At least what KeptSettings takes in memory.
[[nodiscard]] std::uint64_t metadata_bytes(const Settings& settings);

}  // namespace tessera::detail
