// Checks that a backend, or a range of layers, can compute a model.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// Returns an error (unsupported) if the model needs a capability or an activation that the backend does not have.
[[nodiscard]] Status check_capabilities(const ModelSpec& spec, const backend::Backend& backend);

// Returns an error (unsupported) if layers [first, last) need something of earlier layers beside the residual stream.
[[nodiscard]] Status check_layers(const ModelSpec& spec, std::uint32_t first, std::uint32_t last);

}  // namespace tessera::detail
