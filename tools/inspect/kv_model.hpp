// Reads the figures for --kv-table from a model file's metadata and tensor sizes, also for architectures that the engine does not run.
#pragma once

#include <string>
#include <vector>

#include <tessera/extend/files/model_file.hpp>
#include <tessera/kv/wide_layers.hpp>

#include "kv_table.hpp"

namespace tessera::inspect {

struct KvModel {
  std::string architecture;
  std::vector<KvLayers> groups;     // layers without KV heads are left out
  KvLayout states;                  // states of recurrent layers, if the engine runs the model
  std::uint64_t weights = 0;        // bytes in the engine; if the engine does not run the model, bytes in the file
  std::uint64_t context = 0;        // tokens of the longest context that the model was made for; 0: the file does not say
  std::vector<std::string> notes;   // assumptions behind the figures that a reader might not expect
};

// Reads the figures. `wide`: how many layers at both ends of the model get a KV type of their own (--kv-wide). Errors: a key of the
// metadata is missing or wrong (the error names it); invalid_argument, there are more wide layers than layers.
[[nodiscard]] Result<KvModel> read_kv_model(const ModelFile& file, const WideLayers& wide = {});
// Reads the same figures from a model of any kind that the engine runs.
[[nodiscard]] Result<KvModel> read_kv_model(const ModelSource& source, const WideLayers& wide);

}  // namespace tessera::inspect
