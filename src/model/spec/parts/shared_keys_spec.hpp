// Reads which layers use the keys and values of an earlier layer (Setting::shared_kv_layers).
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets LayerSpec::keys_of. The file says how many layers at the end have no keys and values of their own. Each of these layers reads the
// keys and values of another layer: the last one before them that has the same window, rope and head sizes. If the architecture's
// attn_v.weight is optional, a layer without it uses its keys as values; keys and values must have the same size then. Does nothing if the
// architecture shares no keys. Precondition: the layers' other fields are set.
[[nodiscard]] Status read_shared_keys(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
