// Patterns in the syntax of ECMA-262 (what JSON Schema names), as far as they are regular: classes, groups, alternatives,
// counts, anchors anywhere, lookahead outside groups. Not: back references, lookbehind, word boundaries, \p{...}.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/regex/character_class.hpp"
#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

struct PatternOptions {
  enum class Match : std::uint8_t { whole, search };  // search: anywhere in the text, unless anchored
  enum class Case : std::uint8_t { exact, ignore };   // of ASCII letters
  enum class Dot : std::uint8_t { line, all };        // line: not the line terminators
  Spelling spelling = Spelling::utf8;
  Match match = Match::whole;
  Case letters = Case::exact;
  Dot dot = Dot::line;
};

// Fails with the byte in the pattern.
[[nodiscard]] Regex parse_pattern(RegexStore& store, std::string_view pattern, const PatternOptions& options);

// A class as patterns and EBNF write it, "[a-z\d]" or "[^...]", from `at` (behind the bracket), which moves behind it.
[[nodiscard]] CharSet parse_class(std::string_view text, std::size_t& at, EscapePlace place = EscapePlace::in_class);

}  // namespace tessera::grammar
