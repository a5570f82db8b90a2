// Reads how a layer attends: heads, window, rope, and the scale of scores.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// Fills in the attention of layer `index`. Preconditions: the layer's mixer is attention; the width and context of `spec` are set.
[[nodiscard]] Status read_attention(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t index, ModelSpec& spec);

}  // namespace tessera::detail
