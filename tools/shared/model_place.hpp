// Finds the model that a user names: a path, or a name in another program's store on this machine.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera::tool {

// Returns the path of a model. Names that begin with "ollama:", "lmstudio:" or "hf:" are looked up in the stores of Ollama, LM Studio and
// Hugging Face's hub. Variables that place these stores, like $OLLAMA_MODELS and $HF_HOME, have their effect. Nothing is downloaded. Any
// other text is a path. Errors: not_found, the store does not have the model (the message lists the models that it has); corrupt_file, a
// file of the store is damaged.
[[nodiscard]] Result<std::filesystem::path> model_place(std::string_view text);

// Opens the model at model_place(text): a GGUF file, or a folder of a hub. Errors: those of model_place() and open_model().
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> open_named_model(std::string_view text);

// The forms of a model's name, for the help of options that name a model.
inline constexpr const char* kModelForms = "a GGUF file (of a split one, the first part), a model's folder,\nollama:NAME, lmstudio:PUBLISHER/MODEL or hf:ORGANISATION/MODEL";

}  // namespace tessera::tool
