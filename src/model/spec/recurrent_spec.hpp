// The mixers of a model's layers, and the numbers of recurrent ones, from a file's metadata.
#pragma once

#include <cstdint>
#include <span>

#include <tessera/extend/files/gguf.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

// Sets each layer's mixer with its numbers, and Ffn::none in layers that are a mixer alone. Errors name the key.
[[nodiscard]] Status read_mixers(const GgufFile& metadata, const Architecture& table, ModelSpec& spec);

// Bytes of a recurrent layer's state, of one sequence; 0 for other layers.
[[nodiscard]] std::uint64_t state_bytes(const ModelSpec& spec, const LayerSpec& layer) noexcept;

}  // namespace tessera::detail
