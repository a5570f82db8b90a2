// Reads a layer's feed-forward half: its size, or its experts and their routing.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills `layer`, the index-th of `n_layers`. Precondition: the layer has a feed-forward half.
[[nodiscard]] Status read_feed(const SettingReader& from, LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers);

}  // namespace tessera::detail
