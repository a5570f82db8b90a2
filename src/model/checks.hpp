// What a model needs, and whether there is somebody who computes it.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// Returns an error if the model has a part that the backend does not compute.
[[nodiscard]] Status check_parts(const ModelSpec& spec, const backend::Backend& backend);

// Returns an error if layers [first, last) need what layers before them compute, apart from the residual stream.
[[nodiscard]] Status check_layers(const ModelSpec& spec, std::uint32_t first, std::uint32_t last);

}  // namespace tessera::detail
