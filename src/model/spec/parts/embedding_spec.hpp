// Reads what a model's spec says about embeddings of texts: encoders, pooling, and the heads behind the last layer.
#pragma once

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

Status read_embedding(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
