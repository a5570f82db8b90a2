// Reads what a file says about rotary positions.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>

#include "model/architecture.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// The ropes of a model: that of all layers, or of those that see everything, and that of those with a window beside them.
inline constexpr std::uint32_t kRope = 0, kWindowedRope = 1;

// What YaRN multiplies rotated elements by, where a file says it: transformers' attention_factor, which llama.cpp's converter writes
// under this name. Absent: it follows from the factor.
inline constexpr std::string_view kYarnMagnitudeKey = "rope.scaling.yarn_attn_factor";

// Reads the ropes that the layers of `spec` name, when the layers have been read. What no layer uses is not looked at.
[[nodiscard]] Status read_rope(const ModelFile& file, const Architecture& table, const SpecOverrides& overrides, ModelSpec& spec);

}  // namespace tessera::detail
