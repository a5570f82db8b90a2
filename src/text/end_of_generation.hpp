// Finds the tokens of a vocabulary that end a generation. The model's metadata names one to three of them. Many models also end their
// turns with other tokens; these are recognised by their texts ("<|im_end|>", for example).
#pragma once

#include "text/vocabulary.hpp"

namespace tessera::detail {

// The size of the list of texts by which such tokens are recognised: number of texts, and their bytes together. A memory plan needs both,
// because each token of the list may become a control token.
struct NamedEndings {
  std::uint64_t count, bytes;
};
[[nodiscard]] NamedEndings named_endings() noexcept;

// Marks the tokens of the vocabulary that end a generation (Vocabulary::ends_generation()). Such a token must not appear in text, so it
// becomes a control token, even if the model's file gives it another type.
void mark_end_of_generation(Vocabulary& vocabulary) noexcept;

}  // namespace tessera::detail
