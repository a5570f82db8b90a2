// The tokenizer.json of a tokenizer that a GGUF file has as lists, for folders as hubs have them. The inverse of list_tokenizer().
#pragma once

#include <stop_token>
#include <string>

#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera::detail {

// Returns the text of a tokenizer.json. `tokenizer`: that of the settings. The result is read back, and gives the same tokens on texts of
// many kinds. Errors: unsupported, the steps of this tokenizer cannot be said in a tokenizer.json; those of Tokenizer::from_settings();
// cancelled.
[[nodiscard]] Result<std::string> tokenizer_as_json(const Settings& settings, const Tokenizer& tokenizer, const std::stop_token& stop);

}  // namespace tessera::detail
