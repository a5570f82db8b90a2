// Reads the files of sentence-transformers, which say how the embedding of a text is computed from the outputs of the model:
// modules.json, and the configurations that modules.json names.
#pragma once

#include <filesystem>
#include <vector>

#include "files/safetensors/safetensors_folder.hpp"
#include "hub/mapping.hpp"

namespace tessera::detail::hub {

// Sets the settings of an embedding model: pooling, text_tokens, and the prompts that are put before queries and documents. A folder
// without modules.json is not an embedding model. Then only pooling is set, and only if the model has a head that ranks. Errors:
// unsupported, a module or a pooling that tessera does not compute; corrupt_file.
[[nodiscard]] Status read_embedding_settings(const std::filesystem::path& folder, const Config& config, Mapping& to);

// Returns the Dense modules of modules.json: matrices by which the embedding is multiplied after the final norm. There are two of them or
// none. The names of their tensors get the prefixes "dense.0." and "dense.1.". Errors: unsupported, Dense modules that tessera does not
// compute; corrupt_file.
[[nodiscard]] Result<std::vector<SafetensorsFolder::Module>> read_dense_modules(const std::filesystem::path& folder);

}  // namespace tessera::detail::hub
