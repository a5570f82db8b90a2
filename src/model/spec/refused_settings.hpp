// Refuses settings that change results and that tessera, or an architecture, does not implement.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Returns an error that names the model's first unimplemented setting. Settings whose value changes nothing are passed over.
[[nodiscard]] Status refuse_unsupported(const SettingReader& from);

}  // namespace tessera::detail
