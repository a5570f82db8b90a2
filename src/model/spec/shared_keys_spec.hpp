// Reads which layers use an earlier layer's keys and values (Setting::shared_kv_layers).
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets LayerSpec::keys_of. The file says how many of the last layers share; each reads the keys and values of the last layer of its kind
// before them. If the table makes attn_v.weight optional, a layer without it uses its keys as values, and both must have the same size.
// Does nothing in an architecture without shared keys. Precondition: the layers' other fields are set.
[[nodiscard]] Status read_shared_keys(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
