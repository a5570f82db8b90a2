// What --kv-table needs of a model file: from its metadata and its tensors' sizes, also of architectures that the
// engine does not run.
#pragma once

#include <string>
#include <vector>

#include <tessera/files/model_file.hpp>
#include <tessera/kv/wide_layers.hpp>

#include "kv_table.hpp"

namespace tessera::inspect {

struct KvModel {
  std::string architecture;
  std::vector<KvLayers> groups;     // layers without KV heads are left out
  KvLayout states;                  // of recurrent layers, if it has any and the engine runs it
  std::uint64_t weights = 0;        // as the engine holds them; if it does not run the model, as the file does
  std::uint64_t context = 0;        // positions that the model knows; 0: the file does not say
  std::vector<std::string> notes;   // what the figures rest on, where a reader could think otherwise
};

// `wide`: layers at the two ends that have a type of their own. Errors name the key that is missing or wrong; invalid_argument:
// more wide layers than there are.
[[nodiscard]] Result<KvModel> read_kv_model(const ModelFile& file, const WideLayers& wide = {});

}  // namespace tessera::inspect
