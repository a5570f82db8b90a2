// Reads a model's rotary positions.
#pragma once

#include <cstdint>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// Indices of a model's ropes. kWindowedRope: the rope of layers with a window, if other layers see everything with kRope.
inline constexpr std::uint32_t kRope = 0, kWindowedRope = 1;

// Reads the ropes that the layers of `spec` name; a model without rotary positions has none. Settings of ropes that no layer uses are not
// looked at. Precondition: the layers are read.
[[nodiscard]] Status read_rope(const SettingReader& from, const SpecOverrides& overrides, ModelSpec& spec);

}  // namespace tessera::detail
