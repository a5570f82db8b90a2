// Reads a layer's FFN: its size, or its experts and how rows are routed to them.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills in the FFN of `layer`, which is layer `index` of `n_layers`. Precondition: the layer has an FFN.
[[nodiscard]] Status read_feed(const SettingReader& from, LayerSpec& layer, std::uint32_t index, std::uint32_t n_layers);

}  // namespace tessera::detail
