// Compares two tokenizers that were made from different files.
#pragma once

#include <tessera/text/tokenizer.hpp>

namespace tessera::detail {

// Returns whether both give the same tokens for texts of many kinds, and the same texts for these tokens.
[[nodiscard]] bool give_same_tokens(const Tokenizer& a, const Tokenizer& b);
// Returns whether both give the same tokens for these texts. Does not compare the texts that tokens decode to.
[[nodiscard]] bool encode_alike(const Tokenizer& a, const Tokenizer& b);

}  // namespace tessera::detail
