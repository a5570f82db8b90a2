// Reads which mixer each layer has (attention or a recurrent mixer), and the dimensions of recurrent mixers.
#pragma once

#include <cstdint>

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets the mixer of each layer, with its dimensions. Sets Ffn::none in layers that have a mixer but no feed. Does nothing if the
// architecture has no recurrent layers.
[[nodiscard]] Status read_mixers(const SettingReader& from, ModelSpec& spec);

// Returns the bytes that the state of one sequence takes in this layer; 0 if the layer is not recurrent.
[[nodiscard]] std::uint64_t state_bytes(const ModelSpec& spec, const LayerSpec& layer) noexcept;

}  // namespace tessera::detail
