// Reads the parts of a model's spec that concern embeddings of texts: encoders, pooling, and the heads after the last layer.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

Status read_embedding(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
