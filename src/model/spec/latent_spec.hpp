// What latent attention adds to a layer's spec.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

// Of an architecture that has it: fills in the layers' numbers, when everything else has been read. A file whose matrix out of the
// latent is in one piece is refused.
[[nodiscard]] Status read_latent(const ModelFile& file, const Architecture& table, ModelSpec& spec);

}  // namespace tessera::detail
