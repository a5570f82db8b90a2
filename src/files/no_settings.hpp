// The settings of a model that is an empty handle: there are none, and status() returns the error that the handle is empty.
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
