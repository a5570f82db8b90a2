// Gives the keys of a GGUF file as settings, which have tessera's own names.
#pragma once

#include <array>

#include <tessera/extend/files/settings.hpp>

#include "files/gguf/gguf_parser.hpp"

namespace tessera::detail {

// A view of a file's byte source and parsed header. The source and the header must outlive the view.
class GgufSettings final : public Settings {
 public:
  GgufSettings(const ByteSource& source, const GgufHeader& header);

  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
  [[nodiscard]] std::string called(Setting setting) const override;
  [[nodiscard]] std::string place(Setting setting) const override;
  [[nodiscard]] std::string kind(Setting setting) const override;
  [[nodiscard]] std::string origin() const override;
  [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override;
  [[nodiscard]] std::optional<FileKey> file_key(std::size_t index) const noexcept override;
  [[nodiscard]] std::optional<SettingValue> find_key(std::string_view name) const noexcept override;

 private:
  [[nodiscard]] std::string full(std::string_view key) const;  // puts the architecture's name in front of a key that begins with a dot
  [[nodiscard]] const GgufEntry* entry_of(Setting setting) const noexcept;

  const ByteSource* source_;
  const GgufHeader* header_;
  std::string_view architecture_;                   // the prefix of keys that begin with a dot
  std::array<std::uint32_t, kSettings> entries_{};  // index of each setting's entry, plus 1; 0: the file has none
};

}  // namespace tessera::detail
