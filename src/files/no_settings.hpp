// The settings of an empty handle of a model: none. status() says that the handle is empty.
#pragma once

#include <tessera/extend/files/settings.hpp>

#include "core/empty.hpp"

namespace tessera::detail {

class NoSettings final : public Settings {
 public:
  [[nodiscard]] std::optional<SettingValue> find(Setting) const noexcept override { return std::nullopt; }
  [[nodiscard]] Status status() const noexcept override { return empty_handle("handle of a model"); }
};

}  // namespace tessera::detail
