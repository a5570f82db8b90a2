// Marks, punctuation and control characters as the crate `tokenizers` knows them. The crate's tables are of an old version of Unicode, so
// later characters belong to none of these classes, whatever version the system has.
#pragma once

#include <cstdint>

namespace tessera::detail {

struct CharacterRange {
  std::int32_t low, high;
};

[[nodiscard]] bool is_punctuation(std::int32_t c) noexcept;      // P, and the symbols of ASCII
[[nodiscard]] bool is_mark(std::int32_t c) noexcept;             // M, as the normalizer StripAccents removes them
[[nodiscard]] bool is_nonspacing_mark(std::int32_t c) noexcept;  // Mn, as BertNormalizer removes them
[[nodiscard]] bool is_other(std::int32_t c) noexcept;            // Cc, Cf, Co, without tab, newline and carriage return

}  // namespace tessera::detail
