// What latent attention adds to a layer's spec.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills in the layers' numbers, when everything else has been read; does nothing of an architecture without it. A file whose matrix out of the
// latent is in one piece is refused.
[[nodiscard]] Status read_latent(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
