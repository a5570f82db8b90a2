// Reads the factors of embeddings, residual branches, queries and logits, and the softcap of logits.
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Fills in the factors in `spec` and in its layers. Precondition: the layers are read.
[[nodiscard]] Status read_scales(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
