// Sets of Unicode code points, and the spelling of their characters in bytes: as UTF-8, or inside of a JSON string (RFC 8259, section 7),
// where a character may also be an escape.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/regex/byte_set.hpp"

namespace tessera::grammar {

struct CharRange {
  std::uint32_t low, high;  // both belong to the range
  bool operator==(const CharRange&) const noexcept = default;
};

// A set: sorted, disjoint and not adjacent after normalise(); without surrogates.
using CharSet = std::vector<CharRange>;

[[nodiscard]] CharSet normalise(CharSet set);
[[nodiscard]] CharSet complement(const CharSet& set);
[[nodiscard]] CharSet unite(const CharSet& a, const CharSet& b);
[[nodiscard]] CharSet intersect(const CharSet& a, const CharSet& b);
[[nodiscard]] inline CharSet any_char() { return {{0, 0xD7FF}, {0xE000, 0x10FFFF}}; }

// The spelling of characters. json_plain: an escape only if a character must be one, or is not ASCII, so that most literals have one
// spelling.
enum class Spelling : std::uint8_t { utf8, json, json_plain };
inline constexpr unsigned kSpellings = 3;

// A sequence of byte sets: every choice of one byte from each set is a spelling.
using ByteSequence = std::vector<ByteSet>;
[[nodiscard]] std::vector<ByteSequence> spell(const CharSet& set, Spelling spelling);

}  // namespace tessera::grammar
