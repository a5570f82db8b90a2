// Reads which layers use the weights of an earlier layer (Setting::weights_of).
#pragma once

#include <cstddef>

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Limit for the length of the list, more layers than any model has. It bounds memory: an element of the list takes a byte of the file, and a
// layer takes much more memory than that.
inline constexpr std::size_t kMostSharingLayers = 4096;

// Returns the length of the list that Setting::weights_of is; 0 if the model does not have the setting.
[[nodiscard]] Result<std::size_t> listed_layers(const SettingReader& from);

// Sets LayerSpec::weights_back. Does nothing if the model does not have the setting. Errors: corrupt_file, the list names a later layer or
// a layer that itself uses another layer's weights, or the two layers differ in shape. Precondition: the layers' other fields are set.
[[nodiscard]] Status read_shared_weights(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
