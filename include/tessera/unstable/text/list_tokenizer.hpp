// Converts a tokenizer from the files that hubs have into the lists that GGUF files have (tokens, their types, merges or scores).
#pragma once

#include <memory>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Returns settings with the values of `settings`, but with the tokenizer as lists instead of Setting::tokenizer_json or
// Setting::sentencepiece_model. Settings without these two are returned unchanged. `settings` must outlive the result. A GGUF file has only
// a name for the steps of a tokenizer.json. The function tries the names that this library knows, and chooses one under which the tokenizer
// returns the same tokens as the tokenizer.json, for test texts of many kinds. Errors: those of Tokenizer::from_settings(); unsupported,
// GGUF has no name for the steps of this tokenizer.
[[nodiscard]] Result<std::shared_ptr<const Settings>> list_tokenizer(const Settings& settings, const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
