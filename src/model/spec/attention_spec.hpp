// A layer's attention: its heads, what it sees, whether it rotates, and what scores are multiplied by.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

// Of layer `index` of `spec`, which attends. The spec's width and context are set.
[[nodiscard]] Status read_attention(const SettingReader& from, const SpecOverrides& overrides, std::uint32_t index, ModelSpec& spec);

}  // namespace tessera::detail
