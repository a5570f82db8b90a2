// Patterns in the syntax of ECMA-262 (which JSON Schema names), as far as they are regular: classes, groups, alternatives, counts, anchors
// anywhere, lookahead outside of groups. Not supported: back references, lookbehind, word boundaries, \p{...}.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/regex/character_class.hpp"
#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

struct PatternOptions {
  enum class Match : std::uint8_t { whole, search };  // search: anywhere in the text, unless anchored
  enum class Case : std::uint8_t { exact, ignore };   // ignore: for ASCII letters
  enum class Dot : std::uint8_t { line, all };        // line: all but the line terminators
  Spelling spelling = Spelling::utf8;
  Match match = Match::whole;
  Case letters = Case::exact;
  Dot dot = Dot::line;
};

// Parses a pattern. An error names the byte in the pattern.
[[nodiscard]] Regex parse_pattern(RegexStore& store, std::string_view pattern, const PatternOptions& options);

// Reads a class as patterns and EBNF write it, "[a-z\d]" or "[^...]". `at` is behind the bracket, and moves behind the class.
[[nodiscard]] CharSet parse_class(std::string_view text, std::size_t& at, EscapePlace place = EscapePlace::in_class);

}  // namespace tessera::grammar
