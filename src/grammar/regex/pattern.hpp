// Parses patterns in the syntax of ECMA-262, which JSON Schema prescribes, and makes expressions of a RegexStore. Supported are features
// that can be expressed by an automaton: classes, groups, alternatives, counts, anchors anywhere, and lookahead outside of groups. Not
// supported: back references, lookbehind, word boundaries, \p{...}.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/regex/character_class.hpp"
#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

struct PatternOptions {
  enum class Match : std::uint8_t { whole, search };  // search: the pattern may match anywhere in the text, unless it is anchored
  enum class Case : std::uint8_t { exact, ignore };   // ignore: ASCII letters match in either case
  enum class Dot : std::uint8_t { line, all };        // line: a dot does not match line terminators
  Spelling spelling = Spelling::utf8;
  Match match = Match::whole;
  Case letters = Case::exact;
  Dot dot = Dot::line;
};

// Parses a pattern. Throws Failure (fuel.hpp) if the pattern is malformed or not supported; the error names the byte of the pattern at which this was
// seen.
[[nodiscard]] Regex parse_pattern(RegexStore& store, std::string_view pattern, const PatternOptions& options);

// Parses a character class, "[a-z\d]" or "[^...]". `at` is the offset after the opening bracket; it is moved to the byte after
// the closing bracket.
[[nodiscard]] CharSet parse_class(std::string_view text, std::size_t& at, EscapePlace place = EscapePlace::in_class);

}  // namespace tessera::grammar
