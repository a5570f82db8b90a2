// BERT's vocabulary as GGUF files have it: lists of word pieces, to which BERT's rules apply. The lists are read as a tokenizer.json.
#pragma once

#include <string>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

// Returns whether the settings have such a vocabulary (tokenizer_model is "bert").
[[nodiscard]] bool has_word_pieces(const Settings& settings) noexcept;
// Returns the text of a tokenizer.json with the vocabulary of the settings. Its normalizer changes texts to lower case, unless the
// vocabulary has capital letters. Errors: corrupt_file; not_found, the settings have no tokens.
[[nodiscard]] Result<std::string> word_pieces_as_json(const Settings& settings);

}  // namespace tessera::detail
