// What a model multiplies embeddings, branches, queries and logits by, and what it caps logits at.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// When the layers have been read.
[[nodiscard]] Status read_scales(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
