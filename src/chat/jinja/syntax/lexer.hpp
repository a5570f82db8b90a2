// Cuts a template into tokens, as jinja2's lexer does with trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

enum class TokenKind : std::uint8_t {
  data,            // text outside of tags
  variable_begin,  // {{
  variable_end,    // }}
  block_begin,     // {%
  block_end,       // %}
  name, string, integer, floating,
  op,   // an operator or bracket, which is the token's text
  end,  // the end of the template
};

struct Token {
  TokenKind kind;
  std::uint32_t line;
  // data: the text. string: its value, with escapes resolved. name, number, op: as written ("_" in decimal numbers left out). Begin or end
  // of a tag, and `end`: empty.
  std::string text;

  [[nodiscard]] bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  [[nodiscard]] bool is_op(std::string_view t) const { return is(TokenKind::op, t); }
  [[nodiscard]] bool is_name(std::string_view t) const { return is(TokenKind::name, t); }
};

// Returns all tokens; the last one is `end`. Throws Failure.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace tessera::jinja
