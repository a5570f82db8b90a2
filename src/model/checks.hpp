// Checks that a backend can compute a model, and that a range of its layers can be computed by itself.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// Returns an error (unsupported) if the model needs a capability or an activation function that the backend does not have.
[[nodiscard]] Status check_capabilities(const ModelSpec& spec, const backend::Backend& backend);

// Checks that the layers [first, last) can be computed by themselves, from the residual stream alone. Error: unsupported, they need more
// from earlier layers (such as keys and values).
[[nodiscard]] Status check_layers(const ModelSpec& spec, std::uint32_t first, std::uint32_t last);

}  // namespace tessera::detail
