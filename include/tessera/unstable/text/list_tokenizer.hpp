// Makes the lists that GGUF files have of a tokenizer (tokens, their types, merges or scores) from the files that hubs have.
#pragma once

#include <memory>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Returns settings that have what `settings` have, and the tokenizer as lists instead of Setting::tokenizer_json or
// Setting::sentencepiece_model. Settings without one of these two are returned as they are. `settings` must outlive the result.
// The steps of a tokenizer.json are not written into a GGUF file, only their name. The name is one under which this library's tokenizer gives
// the same tokens, on texts of many kinds, as the tokenizer.json.
// Errors: those of Tokenizer::from_settings(); unsupported, GGUF has no name for the steps of this tokenizer.
[[nodiscard]] Result<std::shared_ptr<const Settings>> list_tokenizer(const Settings& settings, const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
