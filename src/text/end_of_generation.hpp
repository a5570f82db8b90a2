// Which tokens end a generation. Metadata names one to three; many models end turns with others, known by their texts.
#pragma once

#include "text/vocabulary.hpp"

namespace tessera::detail {

// How many tokens are known by their texts, and the bytes of these.
struct NamedEndings {
  std::uint64_t count, bytes;
};
[[nodiscard]] NamedEndings named_endings() noexcept;

// Marks them. Where a converter gave such a token another type, it becomes a control token: it must not appear in text.
void mark_end_of_generation(Vocabulary& vocabulary) noexcept;

}  // namespace tessera::detail
