// Converts a tokenizer from the files that hubs have into the lists that GGUF files have (tokens, their types, merges or scores).
#pragma once

#include <memory>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Returns settings with the values of `settings`, but with the tokenizer as lists instead of Setting::tokenizer_json or
// Setting::sentencepiece_model. Settings without these two are returned unchanged. `settings` must outlive the result.
// A tokenizer.json states its steps in detail, but a GGUF file has only a name for them. The function tries the names that this library
// knows, and chooses one with which test texts of many kinds give the same tokens as with the tokenizer.json. Errors: those of
// Tokenizer::from_settings(); unsupported, no name gives the same tokens.
[[nodiscard]] Result<std::shared_ptr<const Settings>> list_tokenizer(const Settings& settings, const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
