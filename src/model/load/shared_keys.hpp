// Layers that read an earlier layer's keys and values (attention.shared_kv_layers).
#pragma once

#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>

#include "model/architecture.hpp"

namespace tessera::detail {

// Sets LayerSpec::keys_of: the file says how many of the last layers share, and each does with the last layer of its
// kind before them. The layers' other fields are set. A layer without attn_v.weight has its keys for values, where the
// table lets it: they must be as large.
Status read_shared_keys(const ModelFile& file, const Architecture& table, ModelSpec& spec);

}  // namespace tessera::detail
