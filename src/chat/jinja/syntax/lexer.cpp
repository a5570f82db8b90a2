#include "chat/jinja/syntax/lexer.hpp"

#include <algorithm>
#include <optional>

#include "chat/jinja/budget.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"

namespace tessera::jinja {
namespace {

constexpr std::size_t kMostTokens = 100'000;

[[noreturn]] void fail_at(std::uint32_t line, std::string message) {
  throw Failure{ErrorCode::invalid_argument, std::move(message), line};
}

// Returns the source with "\n" as its only line end. As in jinja2, one line end at the end of the template is removed.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(first_character(text.substr(at)))) at += character_size(text.substr(at));
  return at;
}

// Returns the text without white space at its end.
std::string_view rstripped(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!is_space(first_character(text.substr(start)))) break;
    text = text.substr(0, start);
  }
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normalized(source)), source_(owned_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::string text) {
    if (tokens_.size() >= kMostTokens) {
      throw Failure{ErrorCode::over_budget, fmt::format("a template of more than {} words", kMostTokens), line_};
    }
    tokens_.push_back({kind, line_, std::move(text)});
  }
  [[nodiscard]] bool here(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void advance(std::size_t to) {
    line_ += static_cast<std::uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                   source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    line_starting_ = to > at_ && source_[to - 1] == '\n';
    at_ = to;
  }

  // Reads text up to the next tag, and the tag itself.
  void root() {
    std::size_t tag = source_.find('{', at_);
    while (tag != source_.npos && !is_tag(tag)) tag = source_.find('{', tag + 1);
    if (tag == source_.npos) {
      add(TokenKind::data, std::string(source_.substr(at_)));
      return advance(source_.size());
    }
    const char type = source_[tag + 1];
    const std::size_t sign_at = tag + 2;
    const char sign = sign_at < source_.size() && (source_[sign_at] == '-' || source_[sign_at] == '+') ? source_[sign_at] : 0;
    emit_data(source_.substr(at_, tag - at_), sign, type == '{');
    advance(tag);
    if (type == '#') return comment();
    if (type == '%') {
      if (const auto body = raw_begin()) return raw(*body);
    }
    add(type == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "");
    advance(sign_at + (sign != 0));
    inside(type == '{');
  }
  [[nodiscard]] bool is_tag(std::size_t at) const {
    return at + 1 < source_.size() && (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#');
  }

  // Adds the text before a tag as a token. Removes white space from the end of the text. Sign '-' ("{%-"): all of it. No sign, and the tag
  // is not a variable's: the white space before the tag on its line, if nothing else is before the tag on this line (lstrip_blocks).
  void emit_data(std::string_view text, char sign, bool before_variable) {
    if (sign == '-') {
      text = rstripped(text);
    } else if (sign != '+' && !before_variable) {
      const std::size_t line = text.rfind('\n') + 1;  // where the text's last line begins; 0 if the text has no line end
      if ((line > 0 || line_starting_) && skip_space(text, line) == text.size()) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  // Looks for the end of a tag at offset `at`. `end`: the end's text ("%}", "}}" or "#}"). `signs`: the signs that may stand before `end`.
  // Returns the offset behind the end and behind the white space that is removed after the tag; nullopt if no end begins at `at`. Removed
  // is: after the sign '-' all white space; without a sign, and if `trim` is true, one line end; otherwise nothing.
  [[nodiscard]] std::optional<std::size_t> tag_end(std::size_t at, std::string_view end, std::string_view signs,
                                                   bool trim) const {
    const std::string_view rest = source_.substr(at);
    if (rest.starts_with(end)) {
      const std::size_t behind = at + end.size();
      return trim && behind < source_.size() && source_[behind] == '\n' ? behind + 1 : behind;
    }
    if (rest.empty() || signs.find(rest[0]) == signs.npos || !rest.substr(1).starts_with(end)) return std::nullopt;
    const std::size_t behind = at + 1 + end.size();
    return rest[0] == '-' ? skip_space(source_, behind) : behind;
  }

  void comment() {
    for (std::size_t at = at_ + 2; at < source_.size(); ++at) {
      if (const auto behind = tag_end(at, "#}", "+-", true)) return advance(*behind);
    }
    fail_at(line_, "the comment is never closed: \"#}\" is missing");
  }

  // If "{% raw %}" begins here, returns the offset after it.
  [[nodiscard]] std::optional<std::size_t> raw_begin() const {
    std::size_t at = at_ + 2;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    at = skip_space(source_, at);
    if (!source_.substr(at).starts_with("raw")) return std::nullopt;
    at = skip_space(source_, at + 3);
    return tag_end(at, "%}", "-", false);
  }

  void raw(std::size_t body) {
    const std::uint32_t opened = line_;
    advance(body);
    for (std::size_t at = source_.find("{%", at_); at != source_.npos; at = source_.find("{%", at + 1)) {
      std::size_t name = at + 2;
      const char sign = name < source_.size() && (source_[name] == '-' || source_[name] == '+') ? source_[name] : 0;
      name = skip_space(source_, name + (sign != 0));
      if (!source_.substr(name).starts_with("endraw")) continue;
      const auto behind = tag_end(skip_space(source_, name + 6), "%}", "+-", true);
      if (!behind) continue;
      emit_data(source_.substr(at_, at - at_), sign, false);
      return advance(*behind);
    }
    fail_at(opened, "{% raw %} is never closed: {% endraw %} is missing");
  }

  // Reads the tokens inside a tag, up to the tag's end.
  void inside(bool variable) {
    const std::uint32_t opened = line_;
    std::string brackets;  // the closing brackets that are still missing; while there are any, the tag cannot end
    for (;;) {
      const std::size_t space = skip_space(source_, at_);
      if (space > at_) advance(space);
      if (at_ >= source_.size()) fail_at(opened, variable ? "\"{{\" is never closed" : "\"{%\" is never closed");
      if (brackets.empty()) {
        const auto behind = variable ? tag_end(at_, "}}", "-", false) : tag_end(at_, "%}", "+-", true);
        if (behind) {
          add(variable ? TokenKind::variable_end : TokenKind::block_end, "");
          return advance(*behind);
        }
      }
      word(brackets);
    }
  }

  void word(std::string& brackets) {
    const char c = source_[at_];
    const std::uint32_t character = first_character(source_.substr(at_));
    if (c >= '0' && c <= '9') return number();
    if (c == '_' || is_alphabetic(character)) return name();
    if (c == '\'' || c == '"') return string(c);
    for (const std::string_view op : {"**", "//", "==", "!=", ">=", "<="}) {
      if (here(op)) return oper(op);
    }
    if (std::string_view("+-*/%~()[]{}<>=.:|,;").find(c) == std::string_view::npos) {
      fail_at(line_, fmt::format("unexpected character {}", std::string(source_.substr(at_, character_size(source_.substr(at_))))));
    }
    if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty()) fail_at(line_, fmt::format("unexpected '{}'", c));
      if (brackets.back() != c) fail_at(line_, fmt::format("unexpected '{}', expected '{}'", c, brackets.back()));
      brackets.pop_back();
    }
    oper(source_.substr(at_, 1));
  }

  void oper(std::string_view text) {
    add(TokenKind::op, std::string(text));
    advance(at_ + text.size());
  }

  void name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const std::uint32_t c = first_character(source_.substr(end));
      if (c != '_' && !is_alphabetic(c) && !is_digit(c)) break;
      end += character_size(source_.substr(end));
    }
    add(TokenKind::name, std::string(source_.substr(at_, end - at_)));
    advance(end);
  }

  // Reads a number: 12, 1_000, 0x1f, 0b1, 0o7, 1.5, 1e3 or 1.5e-3. Exception: after a dot only an integer, because "x.1.2" means x[1][2].
  void number() {
    const bool after_dot = !tokens_.empty() && tokens_.back().is_op(".") && source_[at_ - 1] == '.';
    const auto digits = [&](std::size_t at, auto&& is) {  // returns the offset after digits, between which single underscores may be
      while (at < source_.size() &&
             (is(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is(source_[at + 1])))) {
        ++at;
      }
      return at;
    };
    const auto decimal = [](char c) { return c >= '0' && c <= '9'; };
    const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
    if (source_[at_] == '0' && at_ + 2 < source_.size()) {
      const char base = static_cast<char>(source_[at_ + 1] | 0x20);
      if ((base == 'x' && hex(source_[at_ + 2])) || (base == 'b' && (source_[at_ + 2] | 1) == '1') ||
          (base == 'o' && source_[at_ + 2] >= '0' && source_[at_ + 2] <= '7')) {
        const std::size_t end = digits(at_ + 2, hex);
        add(TokenKind::integer, std::string(source_.substr(at_, end - at_)));
        return advance(end);
      }
    }
    std::size_t end = digits(at_, decimal);
    bool floating = false;
    if (!after_dot) {
      if (end + 1 < source_.size() && source_[end] == '.' && decimal(source_[end + 1])) {
        end = digits(end + 1, decimal);
        floating = true;
      }
      if (end < source_.size() && (source_[end] | 0x20) == 'e') {
        std::size_t exponent = end + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (exponent < source_.size() && decimal(source_[exponent])) {
          end = digits(exponent, decimal);
          floating = true;
        }
      }
    }
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    add(floating ? TokenKind::floating : TokenKind::integer, std::move(text));
    advance(end);
  }

  void string(char quote) {
    std::string text;
    std::size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] != '\\') {
        text += source_[at];
      } else if (++at < source_.size()) {
        at = escape(at, text);
      }
    }
    if (at >= source_.size()) fail_at(line_, "the string is never closed");
    add(TokenKind::string, std::move(text));
    advance(at + 1);
  }

  // Reads one of Python's escapes. `at` is the offset of the character after the backslash. Returns the offset of the escape's last byte.
  std::size_t escape(std::size_t at, std::string& text) const {
    const char c = source_[at];
    constexpr std::string_view from = "\\'\"abfnrtv", to = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t i = from.find(c); i != from.npos) {
      text += to[i];
      return at;
    }
    if (c == '\n') return at;  // a backslash at the end of a line continues the line
    std::uint32_t value = 0;
    if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      for (std::size_t i = 1; i <= n; ++i) {
        const char d = at + i < source_.size() ? source_[at + i] : 0;
        const char low = static_cast<char>(d | 0x20);
        if (!((d >= '0' && d <= '9') || (low >= 'a' && low <= 'f'))) {
          fail_at(line_, fmt::format("\\{} needs {} hexadecimal digits", c, n));
        }
        value = value * 16 + static_cast<std::uint32_t>(d <= '9' ? d - '0' : low - 'a' + 10);
      }
      if (value > 0x10FFFF) fail_at(line_, "an escape beyond the last character, U+10FFFF");
      detail::append_utf8(text, value);
      return at + n;
    }
    if (c >= '0' && c <= '7') {
      std::size_t end = at;
      for (; end < at + 3 && end < source_.size() && source_[end] >= '0' && source_[end] <= '7'; ++end) {
        value = value * 8 + static_cast<std::uint32_t>(source_[end] - '0');
      }
      detail::append_utf8(text, value);
      return end - 1;
    }
    if (c == 'N') throw Failure{ErrorCode::unsupported, "\\N{...} in a string is not supported", line_};
    text += '\\';
    text += c;
    return at;
  }

  std::string owned_;
  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_starting_ = true;  // true: a line end was the last byte that advance() has passed; also at the template's beginning
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace tessera::jinja
