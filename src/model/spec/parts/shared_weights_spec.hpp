// Reads which layers use the weights of an earlier layer (Setting::weights_of).
#pragma once

#include <cstddef>

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Limit for the number of layers of a model whose layers share weights (Setting::weights_of): more than any such model has. Without the
// limit, a small false file could make the library take much memory: an element of the list takes one byte in the file, but a layer takes
// much more in memory.
inline constexpr std::size_t kMostSharingLayers = 4096;

// Returns the length of the list Setting::weights_of; 0 if the model does not have the setting.
[[nodiscard]] Result<std::size_t> listed_layers(const SettingReader& from);

// Sets LayerSpec::weights_back from Setting::weights_of: element i of this list is the layer whose weights layer i uses (i: its own). Does
// nothing if the model does not have the setting. Errors: corrupt_file, the list does not have one integer for each layer; it names a later
// layer, or a layer that itself uses another layer's weights; or two layers that share weights differ in shape. Precondition: the layers'
// other fields are set.
[[nodiscard]] Status read_shared_weights(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
