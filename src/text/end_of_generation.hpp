// Tokens that end a generation. Metadata names one to three; many models end turns with further tokens, known by their texts.
#pragma once

#include "text/vocabulary.hpp"

namespace tessera::detail {

// The number of tokens that are known by their texts, and the bytes of these texts.
struct NamedEndings {
  std::uint64_t count, bytes;
};
[[nodiscard]] NamedEndings named_endings() noexcept;

// Marks the end tokens. One that a converter gave another type becomes a control token, because it must not appear in text.
void mark_end_of_generation(Vocabulary& vocabulary) noexcept;

}  // namespace tessera::detail
