// Sets of Unicode code points, and the bytes with which their characters are written: in UTF-8, or inside a JSON string (RFC 8259, section
// 7). In a JSON string a character may also be written as an escape.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/regex/byte_set.hpp"

namespace tessera::grammar {

struct CharRange {
  std::uint32_t low, high;  // both ends belong to the range
  bool operator==(const CharRange&) const noexcept = default;
};

// A set of code points. After normalise() its ranges are sorted, do not overlap or touch, and contain no surrogates.
using CharSet = std::vector<CharRange>;

[[nodiscard]] CharSet normalise(CharSet set);
[[nodiscard]] CharSet complement(const CharSet& set);
[[nodiscard]] CharSet unite(const CharSet& a, const CharSet& b);
[[nodiscard]] CharSet intersect(const CharSet& a, const CharSet& b);
[[nodiscard]] inline CharSet any_char() { return {{0, 0xD7FF}, {0xE000, 0x10FFFF}}; }

// How characters are written. utf8: as UTF-8. json: as in a JSON string, where any character may also be an escape (\u0041). json_plain:
// as json, but printable ASCII characters that need no escape are not escaped (exception: '/' may be), so that most texts can be written in
// only one way.
enum class Spelling : std::uint8_t { utf8, json, json_plain };
inline constexpr unsigned kSpellings = 3;

// A sequence of byte sets, which stands for all texts that have one byte of each set, in order.
using ByteSequence = std::vector<ByteSet>;
[[nodiscard]] std::vector<ByteSequence> spell(const CharSet& set, Spelling spelling);

}  // namespace tessera::grammar
