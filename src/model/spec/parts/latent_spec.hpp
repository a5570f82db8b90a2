// Reads the dimensions and the scale of latent attention.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills in each layer's latent attention, and corrects the routing of experts. Does nothing if the architecture has no latent attention.
// Precondition: the layers and ropes are read. Error: unsupported, the file comes from an older converter, which wrote the matrix that
// expands the latent to keys and values in one piece instead of two.
[[nodiscard]] Status read_latent(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
