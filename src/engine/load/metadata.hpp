// The model's settings that an engine keeps after loading: numbers and strings. Lists are not kept, because a vocabulary has megabytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

// Copies of settings and of the file's other keys, which outlive the source. Strings over 1 MiB are left out.
class KeptSettings final : public Settings {
 public:
  explicit KeptSettings(const Settings& settings);
  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
  [[nodiscard]] std::string called(Setting setting) const override;
  [[nodiscard]] std::string origin() const override;
  // Returns the template called `name` ("tool_use") from the file's key "tokenizer.chat_template.tool_use".
  [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override;
  [[nodiscard]] std::optional<FileKey> file_key(std::size_t index) const noexcept override;

 private:
  struct Entry {
    Entry(std::string_view called, const SettingValue& from);
    std::string name;  // the key, as the file writes it
    std::string text;  // a copy of the value, if it is a string
    SettingValue value;
  };
  [[nodiscard]] static SettingValue value_of(const Entry& entry) noexcept;

  std::string origin_;
  std::string template_name_;    // the file's key of Setting::chat_template
  std::vector<Entry> entries_;   // keys of the file, in the file's order, then settings that are not keys of the file
  std::size_t n_file_keys_ = 0;  // the first n_file_keys_ of entries_ are keys of the file
  std::array<std::uint32_t, kSettings> of_settings_{};  // index of each setting's entry, plus 1; 0: no entry
};

// Returns an upper bound of the bytes of KeptSettings.
[[nodiscard]] std::uint64_t metadata_bytes(const Settings& settings);

}  // namespace tessera::detail
