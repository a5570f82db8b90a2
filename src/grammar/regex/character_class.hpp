// Escapes and classes of patterns: what the pattern parser and EBNF share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "grammar/interner.hpp"
#include "grammar/regex/charset.hpp"

namespace tessera::grammar {

[[noreturn]] void pattern_error(std::size_t at, std::string message, ErrorCode code = ErrorCode::invalid_argument);

// The character at `at`, which moves behind it.
[[nodiscard]] std::uint32_t next_character(std::string_view text, std::size_t& at);

struct ClassItem {
  CharSet chars;
  std::uint32_t code;  // of a single character, else kNone
};
enum class EscapePlace : std::uint8_t { in_class, in_rules, outside };  // in_rules: texts and classes of EBNF, which have \UXXXXXXXX

// What follows a backslash; `at` is behind it and moves behind the escape.
[[nodiscard]] ClassItem parse_escape(std::string_view text, std::size_t& at, EscapePlace place);

}  // namespace tessera::grammar
