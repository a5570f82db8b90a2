// tekken.json, the form in which Mistral publishes its tokenizers, beside or instead of a tokenizer.json.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns the tokenizer.json of a tekken.json, for Setting::tokenizer_json: byte-level BPE, whose merges are all ways to join two tokens to
// a third, in the order of ranks. Control tokens have the first ids, and <s> is put before every text. While the function runs, it takes
// about seven times the file's bytes. Errors: corrupt_file, with the place; unsupported, a count is larger than any vocabulary's;
// cancelled.
[[nodiscard]] Result<std::string> tekken_tokenizer_json(std::string_view tekken_json, const std::stop_token& stop);

}  // namespace tessera::detail
