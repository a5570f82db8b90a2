// Escapes and classes of patterns, for the pattern parser and for EBNF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "grammar/interner.hpp"
#include "grammar/regex/charset.hpp"

namespace tessera::grammar {

[[noreturn]] void pattern_error(std::size_t at, std::string message, ErrorCode code = ErrorCode::invalid_argument);

// Returns the character at `at`, and moves `at` behind the character.
[[nodiscard]] std::uint32_t next_character(std::string_view text, std::size_t& at);

struct ClassItem {
  CharSet chars;
  std::uint32_t code;  // code of a single character, else kNone
};
enum class EscapePlace : std::uint8_t { in_class, in_rules, outside };  // in_rules: texts and classes of EBNF, which have \UXXXXXXXX

// Returns the meaning of an escape. `at` is behind the backslash, and moves behind the escape.
[[nodiscard]] ClassItem parse_escape(std::string_view text, std::size_t& at, EscapePlace place);

}  // namespace tessera::grammar
