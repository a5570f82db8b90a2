// Refuses files with settings that change results and that tessera, or the architecture, does not implement.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Returns an error that names the first such setting of the model. A setting whose value changes nothing is not an error.
[[nodiscard]] Status refuse_unsupported(const SettingReader& from);

}  // namespace tessera::detail
