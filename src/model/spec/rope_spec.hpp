// Reads what a file says about rotary positions.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// The ropes of a model: that of all layers, or of those that see everything, and that of those with a window beside them.
inline constexpr std::uint32_t kRope = 0, kWindowedRope = 1;

// Reads the ropes that the layers of `spec` name, when the layers have been read. What no layer uses is not looked at. A model without rotary
// positions has none.
[[nodiscard]] Status read_rope(const SettingReader& from, const SpecOverrides& overrides, ModelSpec& spec);

}  // namespace tessera::detail
