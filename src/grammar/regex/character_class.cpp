// Parses escapes (\d, \u0041) and character classes ([a-z]) of patterns.
#include "grammar/regex/character_class.hpp"

#include <fmt/format.h>

#include "grammar/fuel.hpp"
#include "grammar/regex/pattern.hpp"
#include "core/utf8.hpp"

namespace tessera::grammar {

[[noreturn]] void pattern_error(std::size_t at, std::string message, ErrorCode code) {
  fail(code, std::move(message), fmt::format("byte {} of the pattern", at));
}

std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto step = detail::utf8_step(text.substr(at));
  if (step.kind != detail::Utf8Kind::valid) pattern_error(at, "the pattern is not UTF-8");
  const auto lead = static_cast<unsigned char>(text[at]);
  std::uint32_t code = step.size == 1 ? lead : lead & (0x7Fu >> step.size);
  for (std::size_t i = 1; i < step.size; ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  at += step.size;
  return code;
}

namespace {

// Returns the characters of \s: Unicode's white space and line terminators, as ECMA-262 lists them.
CharSet spaces() {
  return {{9, 13}, {32, 32}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
          {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

std::uint32_t hex(std::string_view text, std::size_t& at, std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at) {
    const char c = at < text.size() ? text[at] : '\0';
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) pattern_error(at, "a hexadecimal digit is missing in an escape");
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return value;
}

std::uint32_t unicode_escape(std::string_view text, std::size_t& at) {
  const std::size_t start = at;
  std::uint32_t code = 0;
  if (at < text.size() && text[at] == '{') {
    ++at;
    std::size_t digits = 0;
    while (at + digits < text.size() && text[at + digits] != '}' && digits < 8) ++digits;
    code = hex(text, at, digits);
    if (digits == 0 || at >= text.size() || text[at] != '}') pattern_error(start, "\\u{...} does not end");
    ++at;
  } else {
    code = hex(text, at, 4);
    if (code >= 0xD800 && code < 0xDC00 && text.substr(at).starts_with("\\u")) {
      std::size_t next = at + 2;
      const std::uint32_t low = hex(text, next, 4);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at = next;
      }
    }
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) pattern_error(start, "an escape that is no character");
  return code;
}

}  // namespace

ClassItem parse_escape(std::string_view text, std::size_t& at, EscapePlace place) {
  const std::size_t start = at - 1;
  if (at >= text.size()) pattern_error(start, "a backslash at the end");
  const auto one = [](std::uint32_t code) { return ClassItem{{{code, code}}, code}; };
  const auto set = [](CharSet chars) { return ClassItem{std::move(chars), kNone}; };
  const CharSet word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, digits{{'0', '9'}};
  const std::uint32_t c = next_character(text, at);
  switch (c) {
    case 'd': return set(digits);
    case 'D': return set(complement(digits));
    case 'w': return set(word);
    case 'W': return set(complement(word));
    case 's': return set(spaces());
    case 'S': return set(complement(spaces()));
    case 't': return one('\t');
    case 'n': return one('\n');
    case 'r': return one('\r');
    case 'v': return one('\v');
    case 'f': return one('\f');
    case '0':
      if (at < text.size() && text[at] >= '0' && text[at] <= '9') pattern_error(start, "octal escapes are not supported");
      return one(0);
    case 'U': {
      if (place != EscapePlace::in_rules) pattern_error(start, "the escape \\U is not known");
      const std::uint32_t code = hex(text, at, 8);
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) pattern_error(start, "an escape that is no character");
      return one(code);
    }
    case 'x': return one(hex(text, at, 2));
    case 'u': return one(unicode_escape(text, at));
    case 'c':
      if (at < text.size() && ((text[at] | 32) >= 'a' && (text[at] | 32) <= 'z')) {
        return one(static_cast<std::uint32_t>(text[at++]) & 31u);
      }
      pattern_error(start, "\\c without a letter");
    case 'b':
      if (place != EscapePlace::outside) return one('\b');
      pattern_error(start, "word boundaries (\\b) are not supported", ErrorCode::unsupported);
    case 'B':
      pattern_error(start, "word boundaries (\\B) are not supported", ErrorCode::unsupported);
    case 'p':
    case 'P':
      pattern_error(start, "Unicode properties (\\p) are not supported", ErrorCode::unsupported);
    case 'k':
      pattern_error(start, "back references are not supported", ErrorCode::unsupported);
    default:
      if (c >= '1' && c <= '9') pattern_error(start, "back references are not supported", ErrorCode::unsupported);
      if ((c | 32) >= 'a' && (c | 32) <= 'z') pattern_error(start, fmt::format("the escape \\{} is not known", static_cast<char>(c)));
      return one(c);
  }
}

CharSet parse_class(std::string_view text, std::size_t& at, EscapePlace place) {
  const std::size_t start = at;
  const bool negative = at < text.size() && text[at] == '^';
  if (negative) ++at;
  CharSet out;
  const auto item = [&]() -> ClassItem {
    const std::uint32_t c = next_character(text, at);
    if (c == '\\') return parse_escape(text, at, place);
    return {{{c, c}}, c};
  };
  for (;;) {
    if (at >= text.size()) pattern_error(start, "a class without its closing bracket");
    if (text[at] == ']') break;
    const std::size_t item_at = at;
    const ClassItem low = item();
    out.insert(out.end(), low.chars.begin(), low.chars.end());
    if (at + 1 >= text.size() || text[at] != '-' || text[at + 1] == ']') continue;
    ++at;
    const ClassItem high = item();
    if (low.code == kNone || high.code == kNone) {  // in [\w-x] the minus is an ordinary character
      out.push_back({'-', '-'});
      out.insert(out.end(), high.chars.begin(), high.chars.end());
      continue;
    }
    if (low.code > high.code) pattern_error(item_at, "a range that ends before it begins");
    out.push_back({low.code, high.code});
  }
  ++at;
  out = normalise(std::move(out));
  return negative ? complement(out) : out;
}

}  // namespace tessera::grammar
