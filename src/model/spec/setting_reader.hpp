// Reads settings as checked numbers; the functions that read a spec use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/extend/files/model_source.hpp>

#include "core/error.hpp"
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
    return source.find_tensor(row_of(role).tensor_name(source.tensor_names(), layer)) != nullptr;
  }
  // Returns a role's name in the file, for errors.
  [[nodiscard]] std::string tensor_name(Role role, std::uint32_t layer = 0) const {
    return row_of(role).tensor_name(source.tensor_names(), layer);
  }

  // Return an error whose place is the setting's in the file.
  template <class... Args>
  [[nodiscard]] Error corrupt(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::corrupt_file, settings.place(setting), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  [[nodiscard]] Error unsupported(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::unsupported, settings.place(setting), format, std::forward<Args>(args)...);
  }

  // Return a count from 1 to `most`. Error: corrupt_file, another value.
  static constexpr std::uint64_t kMostCount = 0x7FFFFFFF;
  [[nodiscard]] Result<std::uint32_t> to_count(Setting setting, std::uint64_t value, std::uint64_t most = kMostCount) const;
  [[nodiscard]] Result<std::uint32_t> count(Setting setting, std::uint64_t most = kMostCount) const;

  // Return a layer's value: the number for all layers, or the layer's element of a list. layer_count() is at least 1, layer_number() at
  // least 0, and `absent` if the model has no such setting.
  [[nodiscard]] Result<std::uint32_t> layer_count(Setting setting, std::uint32_t layer, std::uint32_t n_layers) const;
  [[nodiscard]] Result<std::uint64_t> layer_number(Setting setting, std::uint32_t layer, std::uint32_t n_layers, std::uint64_t absent) const;

  // Returns a factor from 2^-64 to 2^64; `usual` if the model has none. The pass multiplies a few factors, or 1 over them, in float32:
  // within the bounds no product is 0 or infinite. No model has a factor beyond them. Error: corrupt_file.
  [[nodiscard]] Result<double> positive(Setting setting, double usual) const;
  // Does the same, but allows 0, which means that the model has no factor.
  [[nodiscard]] Result<double> positive_or_none(Setting setting, double usual) const;
  [[nodiscard]] Result<float> softcap(Setting setting, double usual) const;

  // Returns the positions that the model was first trained with, before its context was made longer.
  [[nodiscard]] Result<std::uint32_t> original_context(std::uint32_t context) const;
};

}  // namespace tessera::detail
