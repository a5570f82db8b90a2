// Layers that read an earlier layer's keys and values (Setting::shared_kv_layers).
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets LayerSpec::keys_of: the file says how many of the last layers share, and each does with the last layer of its
// kind before them. The layers' other fields are set. A layer without attn_v.weight has its keys for values, where the
// table lets it: they must be as large.
// Does nothing of an architecture without such layers.
[[nodiscard]] Status read_shared_keys(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
