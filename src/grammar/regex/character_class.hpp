// Parses escapes and character classes, for patterns and for EBNF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "grammar/interner.hpp"
#include "grammar/regex/charset.hpp"

namespace tessera::grammar {

[[noreturn]] void pattern_error(std::size_t at, std::string message, ErrorCode code = ErrorCode::invalid_argument);

// Returns the code point of the character at offset `at`, and moves `at` to the next character.
[[nodiscard]] std::uint32_t next_character(std::string_view text, std::size_t& at);

struct ClassItem {
  CharSet chars;
  std::uint32_t code;  // the code point, if this is a single character; else kNone
};
// in_rules: in texts and classes of EBNF, where \UXXXXXXXX is allowed too.
enum class EscapePlace : std::uint8_t { in_class, in_rules, outside };

// Parses an escape and returns its meaning. `at` is the offset after the backslash; it is moved to the end of the escape.
[[nodiscard]] ClassItem parse_escape(std::string_view text, std::size_t& at, EscapePlace place);

}  // namespace tessera::grammar
