// SettingReader reads settings and checks that their numbers make sense. All functions that read a spec use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/extend/files/model_source.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "model/architecture.hpp"
#include "model/load/roles.hpp"

namespace tessera::detail {

struct SettingReader {
  explicit SettingReader(const ModelSource& from, const Architecture& of) noexcept
      : source(from), settings(from.settings()), table(of) {}

  const ModelSource& source;
  const Settings& settings;
  const Architecture& table;

  [[nodiscard]] bool has_tensor(Role role, std::uint32_t layer = 0) const {
    return source.find_tensor(row_of(role).tensor_name(layer)) != nullptr;
  }
  // Returns how the source's files call the role's tensor, for errors.
  [[nodiscard]] std::string called(Role role, std::uint32_t layer = 0) const {
    return printable(source.called(row_of(role).tensor_name(layer)));
  }

  // Return an error whose place is the setting's key in the file.
  template <class... Args>
  [[nodiscard]] Error corrupt(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::corrupt_file, settings.place(setting), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  [[nodiscard]] Error unsupported(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::unsupported, settings.place(setting), format, std::forward<Args>(args)...);
  }

  // Return the setting's value as a count, a number from 1 to `most`. to_count() checks a value that was read already; count() reads the
  // setting. Error: corrupt_file, the value is not such a number.
  static constexpr std::uint64_t kMostCount = 0x7FFFFFFF;
  [[nodiscard]] Result<std::uint32_t> to_count(Setting setting, std::uint64_t value, std::uint64_t most = kMostCount) const;
  [[nodiscard]] Result<std::uint32_t> count(Setting setting, std::uint64_t most = kMostCount) const;

  // Return the setting's value for one layer. The file has either one number for all layers, or a list with a number for each layer.
  // layer_count() returns an error for 0. layer_number() allows 0, and returns `absent` if the model does not have the setting.
  [[nodiscard]] Result<std::uint32_t> layer_count(Setting setting, std::uint32_t layer, std::uint32_t n_layers) const;
  [[nodiscard]] Result<std::uint64_t> layer_number(Setting setting, std::uint32_t layer, std::uint32_t n_layers, std::uint64_t absent) const;

  // Returns the setting's value, a positive factor; `usual` if the model does not have the setting. Error: corrupt_file, the factor is
  // not between 2^-64 and 2^64. The factors of real models lie well within these bounds. Because of the bounds, products of a few
  // factors, or of their inverses, do not become 0 or infinite in float32.
  [[nodiscard]] Result<double> positive(Setting setting, double usual) const;
  // Like positive(), but also allow 0, which some files write for a model without the factor. softcap() returns the result as a float.
  [[nodiscard]] Result<double> positive_or_none(Setting setting, double usual) const;
  [[nodiscard]] Result<float> softcap(Setting setting, double usual) const;

  // Returns the context length of the model's first training, before a later training made it longer. Returns `context` if the file does
  // not have the setting.
  [[nodiscard]] Result<std::uint32_t> original_context(std::uint32_t context) const;
};

}  // namespace tessera::detail
