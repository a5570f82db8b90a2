// Reads the mixers of a model's layers, and the numbers of recurrent ones.
#pragma once

#include <cstdint>

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets each layer's mixer with its numbers, and Ffn::none in layers that are a mixer alone. Does nothing in an architecture without
// recurrent layers.
[[nodiscard]] Status read_mixers(const SettingReader& from, ModelSpec& spec);

// Returns the bytes of one sequence's state of a recurrent layer; 0 for other layers.
[[nodiscard]] std::uint64_t state_bytes(const ModelSpec& spec, const LayerSpec& layer) noexcept;

}  // namespace tessera::detail
