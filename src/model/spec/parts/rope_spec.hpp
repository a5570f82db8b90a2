// Reads the rotary positions (ropes) of a model.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// Indices into ModelSpec::ropes. kWindowedRope is the rope of layers with a window, if they have another rope than the other layers.
inline constexpr std::uint32_t kRope = 0, kWindowedRope = 1;

// Reads the model's ropes into ModelSpec::ropes, which the layers name by index. A model without rotary positions has no rope. If no layer
// uses a rope, the setting of the rope's number of rotated elements is ignored. Precondition: the layers are read.
[[nodiscard]] Status read_rope(const SettingReader& from, const SpecOverrides& overrides, ModelSpec& spec);

}  // namespace tessera::detail
