// Reads the numbers of latent attention.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills the layers' numbers of latent attention; does nothing in an architecture without it. Precondition: the rest of the spec is read.
// Error: unsupported, a file whose matrix out of the latent is in one piece.
[[nodiscard]] Status read_latent(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
