// Settings that change results and that tessera, or an architecture, does not implement.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// An error that names the first such setting which the model has, unless its value changes nothing.
[[nodiscard]] Status refuse_unsupported(const SettingReader& from);

}  // namespace tessera::detail
