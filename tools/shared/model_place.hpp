// Finds the model that a user names: a path, or a name in another program's store on this machine.
#pragma once

#include <filesystem>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::tool {

// Returns the path of a model. Names that begin with "ollama:", "lmstudio:" or "hf:" are looked up in the stores of Ollama, LM Studio and
// Hugging Face's hub, where these programs keep them ($OLLAMA_MODELS, $HF_HOME and the like are heeded); nothing is fetched. Any other text
// is a path. Errors: not_found, the store has no such model, and which it has; corrupt_file, the store's own file is damaged.
[[nodiscard]] Result<std::filesystem::path> model_place(std::string_view text);

}  // namespace tessera::tool
