// Reads which layers use the keys and values of an earlier layer (Setting::shared_kv_layers).
#pragma once

#include <tessera/extend/model/model_spec.hpp>

#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

// Sets LayerSpec::keys_of, for models in which layers share keys and values. The file says how many layers at the end of the model compute
// no keys and values. Each of these layers reads the keys and values of an earlier layer: the last one that computes its own and has the
// same window, rope and head sizes. Does nothing if the architecture shares no keys. Precondition: the layers' other fields are set.
//
// If the architecture's attn_v.weight is optional, a layer without this tensor uses its keys as values. Error: corrupt_file, the keys and
// values of such a layer differ in size.
[[nodiscard]] Status read_shared_keys(const SettingReader& from, ModelSpec& spec);

}  // namespace tessera::detail
