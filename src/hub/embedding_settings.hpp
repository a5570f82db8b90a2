// Reads the files in which sentence-transformers says how a model's rows become the embedding of a text: modules.json and the
// configurations that it names.
#pragma once

#include <filesystem>
#include <vector>

#include "files/safetensors/safetensors_folder.hpp"
#include "hub/mapping.hpp"

namespace tessera::detail::hub {

// Sets pooling, text_tokens and the prompts of queries and documents. A folder without modules.json is no embedder: only the head of a
// model that ranks counts then. Errors: unsupported, a module or a pooling that tessera does not compute; corrupt_file.
[[nodiscard]] Status read_embedding_settings(const std::filesystem::path& folder, const Config& config, Mapping& to);

// Returns the products behind the final norm that modules.json names (Dense): two of them, or none. Their tensors get the prefixes "dense.0."
// and "dense.1.". Errors: unsupported, products that tessera does not compute; corrupt_file.
[[nodiscard]] Result<std::vector<SafetensorsFolder::Module>> read_dense_modules(const std::filesystem::path& folder);

}  // namespace tessera::detail::hub
