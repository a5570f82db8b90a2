// Reads a layer's attention: heads, window, rope, and the scale of scores.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// Fills layer `index` of `spec`. Preconditions: the layer's mixer is attention; the spec's width and context are set.
[[nodiscard]] Status read_attention(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t index, ModelSpec& spec);

}  // namespace tessera::detail
