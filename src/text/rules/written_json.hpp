// Writes the tokenizer.json of a tokenizer that a GGUF file has as lists, for folders as hubs publish them. The inverse of
// list_tokenizer().
#pragma once

#include <stop_token>
#include <string>

#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera::detail {

// Returns the text of a tokenizer.json. `tokenizer`: the tokenizer that the settings make. The result is read back, and must give the same
// tokens for texts of many kinds. Errors: unsupported, a tokenizer.json cannot express the steps of this tokenizer; those of
// Tokenizer::from_settings(); cancelled.
[[nodiscard]] Result<std::string> tokenizer_as_json(const Settings& settings, const Tokenizer& tokenizer, const std::stop_token& stop);

}  // namespace tessera::detail
