// tekken.json, the form in which Mistral publishes its tokenizers, beside or instead of a tokenizer.json.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns the text of a tokenizer.json for a tekken.json, to be used as Setting::tokenizer_json. It describes byte-level BPE. tekken.json
// has ranks of tokens but no merges; the merges are all ways to make a token of two others, in the order of the tokens' ranks. Control
// tokens have the first ids, and <s> is put before every text. While the function runs, it takes about seven times the file's bytes.
// Errors: corrupt_file, with the place; unsupported, a count is larger than any vocabulary's; cancelled.
[[nodiscard]] Result<std::string> tekken_tokenizer_json(std::string_view tekken_json, const std::stop_token& stop);

}  // namespace tessera::detail
