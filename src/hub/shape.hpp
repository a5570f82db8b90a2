// Makes a Shape: the numbers of heads and dimensions on which the arrangements of rows (arrangements.hpp) depend.
#pragma once

#include <tessera/extend/files/settings.hpp>

#include "hub/table.hpp"

namespace tessera::detail::hub {

// Returns the shape of a model from its settings, for any kind of file.
[[nodiscard]] Shape shape_of_model(const Settings& settings) noexcept;

}  // namespace tessera::detail::hub
