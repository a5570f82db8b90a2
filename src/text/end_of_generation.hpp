// Finds the tokens of a vocabulary that end a generation. The model's metadata names one to three of them. Many models also end their
// turns with other tokens; these are recognised by their texts ("<|im_end|>", for example).
#pragma once

#include "text/vocabulary.hpp"

namespace tessera::detail {

// The number of tokens that are recognised by their texts, and the number of bytes in these texts.
struct NamedEndings {
  std::uint64_t count, bytes;
};
[[nodiscard]] NamedEndings named_endings() noexcept;

// Marks the tokens that end a generation. Such a token becomes a control token, even if a converter gave it another type, because it must
// not appear in text.
void mark_end_of_generation(Vocabulary& vocabulary) noexcept;

}  // namespace tessera::detail
