// Cuts template text into tokens: jinja2's lexer with trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

enum class TokenKind : std::uint8_t {
  data,            // text between tags
  variable_begin,  // {{
  variable_end,    // }}
  block_begin,     // {%
  block_end,       // %}
  name, string, integer, floating,
  op,   // an operator or bracket: its text says which
  end,  // the end of the template
};

struct Token {
  TokenKind kind;
  std::uint32_t line;
  std::string text;  // for data and strings their meaning; for other tokens the text as written

  [[nodiscard]] bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  [[nodiscard]] bool is_op(std::string_view t) const { return is(TokenKind::op, t); }
  [[nodiscard]] bool is_name(std::string_view t) const { return is(TokenKind::name, t); }
};

// Returns the tokens; the last one is `end`. Throws Failure.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace tessera::jinja
