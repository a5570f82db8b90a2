// A layer's feed-forward part: its size, or its experts and how a row chooses them.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Of layer `index` of `n_layers`, which has a feed-forward part.
[[nodiscard]] Status read_feed(const SettingReader& from, LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers);

}  // namespace tessera::detail
