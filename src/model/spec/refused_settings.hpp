// Refuses files with settings that change results and that tessera, or the architecture, does not implement.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Returns an error that names the first setting of the model that is not implemented. A setting whose value changes nothing is no error.
[[nodiscard]] Status refuse_unsupported(const SettingReader& from);

}  // namespace tessera::detail
