// A model's settings as numbers that have been checked: what reads a spec is made of.
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
  // A role's name in the file, for errors.
  [[nodiscard]] std::string tensor_name(Role role, std::uint32_t layer = 0) const {
    return row_of(role).tensor_name(source.tensor_names(), layer);
  }

  // An error that says where the setting stands in the file.
  template <class... Args>
  [[nodiscard]] Error corrupt(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::corrupt_file, settings.place(setting), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  [[nodiscard]] Error unsupported(Setting setting, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(ErrorCode::unsupported, settings.place(setting), format, std::forward<Args>(args)...);
  }

  // A count of at least 1 that fits 31 bits, or up to `most`.
  static constexpr std::uint64_t kMostCount = 0x7FFFFFFF;
  [[nodiscard]] Result<std::uint32_t> to_count(Setting setting, std::uint64_t value, std::uint64_t most = kMostCount) const;
  [[nodiscard]] Result<std::uint32_t> count(Setting setting, std::uint64_t most = kMostCount) const;

  // A layer's value: the number for all, or its element of a list with one for each. layer_number() is from 0 on, `absent` where the
  // model has none.
  [[nodiscard]] Result<std::uint32_t> layer_count(Setting setting, std::uint32_t layer, std::uint32_t n_layers) const;
  [[nodiscard]] Result<std::uint64_t> layer_number(Setting setting, std::uint32_t layer, std::uint32_t n_layers, std::uint64_t absent) const;

  // A factor. The pass has it in float32, as it is or as 1 over it, and multiplies a few of them: within the bounds none of that is 0 or
  // infinite. No model has a factor beyond them.
  [[nodiscard]] Result<double> positive(Setting setting, double usual) const;
  // Likewise, or 0, which says that there is no such factor.
  [[nodiscard]] Result<double> positive_or_none(Setting setting, double usual) const;
  [[nodiscard]] Result<float> softcap(Setting setting, double usual) const;

  // Positions that the model was first trained with, before its context was made longer.
  [[nodiscard]] Result<std::uint32_t> original_context(std::uint32_t context) const;
};

}  // namespace tessera::detail
