// The facts that arrangements of rows depend on.
#pragma once

#include <tessera/extend/files/settings.hpp>

#include "hub/table.hpp"

namespace tessera::detail::hub {

// Returns the facts from a model's settings, whatever its files.
[[nodiscard]] Shape shape_of_model(const Settings& settings) noexcept;

}  // namespace tessera::detail::hub
