// Makes a Shape: the facts on which arrangements of rows depend.
#pragma once

#include <tessera/extend/files/settings.hpp>

#include "hub/table.hpp"

namespace tessera::detail::hub {

// Returns the shape of a model from its settings, for any kind of file.
[[nodiscard]] Shape shape_of_model(const Settings& settings) noexcept;

}  // namespace tessera::detail::hub
