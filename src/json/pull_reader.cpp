#include "json/pull_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/printable.hpp"
#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kDeepestSkipped = 100;  // limit for the nesting of arrays and objects in a skipped value
constexpr std::size_t kLongestNumber = 1024;

constexpr bool is_json_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
constexpr bool is_json_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace

Error JsonPullReader::error_of(ErrorCode code, std::string_view what) const {
  if (input_ != nullptr) return input_->error(code, passed_ + static_cast<std::uint64_t>(at_ - begin_), what);
  const std::string_view before(begin_, static_cast<std::size_t>(at_ - begin_));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // 0 if there is no newline
  return make_error(code, "{} (line {}, column {})", what, line, before.size() - begin + 1);
}

Result<bool> JsonPullReader::more() {
  if (at_ != last_) return true;
  if (input_ == nullptr) return false;
  TESSERA_TRY(const std::string_view next, input_->more());
  passed_ += static_cast<std::uint64_t>(last_ - begin_);
  begin_ = at_ = next.data();
  last_ = begin_ + next.size();
  return !next.empty();
}

Status JsonPullReader::need() {
  TESSERA_TRY(const bool there, more());
  return there ? Status() : error("the JSON text ends too early");
}

Result<char> JsonPullReader::peek() {
  for (;;) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    if (!is_json_space(*at_)) return *at_;
    ++at_;
  }
}

Status JsonPullReader::expect(char c) {
  TESSERA_TRY(const char next, peek());
  if (next != c) {
    return fail(ErrorCode::corrupt_file, "the JSON text has '{}' where '{}' is expected", printable(std::string_view(&next, 1)), c);
  }
  ++at_;
  return {};
}

Result<JsonPullReader::Type> JsonPullReader::type() {
  TESSERA_TRY(const char c, peek());
  switch (c) {
    case '{': return Type::object;
    case '[': return Type::array;
    case '"': return Type::string;
    case 't':
    case 'f': return Type::boolean;
    case 'n': return Type::null;
    default: break;
  }
  if (c == '-' || is_json_digit(c)) return Type::number;
  return error("a JSON value is expected here");
}

Status JsonPullReader::enter(char bracket) {
  TESSERA_TRY_STATUS(expect(bracket));
  first_ = true;
  return {};
}

Result<bool> JsonPullReader::next(char bracket) {
  const bool first = std::exchange(first_, false);
  TESSERA_TRY(const char c, peek());
  if (c == bracket) {
    ++at_;
    return false;
  }
  if (first) return true;
  if (c != ',') return expect(bracket).error();
  ++at_;
  return true;
}

Result<bool> JsonPullReader::next_key(std::string& key, std::size_t longest) {
  TESSERA_TRY(const bool has_more, next('}'));
  if (!has_more) return false;
  TESSERA_TRY_STATUS(string(key, longest));
  TESSERA_TRY_STATUS(expect(':'));
  return true;
}

template <class Sink>
Status JsonPullReader::pieces(Sink&& sink) {
  TESSERA_TRY_STATUS(expect('"'));
  for (;;) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    const char* const first = at_;
    while (at_ != last_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) {
      if (static_cast<unsigned char>(*at_) < 0x80) {
        ++at_;
        continue;
      }
      const Utf8Step step = utf8_step({at_, static_cast<std::size_t>(last_ - at_)});
      if (step.kind != Utf8Kind::valid) break;
      at_ += step.size;
    }
    if (at_ != first) {
      TESSERA_TRY_STATUS(sink(std::string_view(first, static_cast<std::size_t>(at_ - first))));
      continue;
    }
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') {
      ++at_;
      return {};
    }
    if (c == '\\') {
      ++at_;
      TESSERA_TRY(const std::uint32_t code, escape());
      std::string text;
      append_utf8(text, code);
      TESSERA_TRY_STATUS(sink(text));
    } else if (c < 0x20) {
      return error("a control character stands in a string");
    } else {
      char bytes[4];
      TESSERA_TRY(const std::string_view text, character(bytes));
      TESSERA_TRY_STATUS(sink(text));
    }
  }
}

Status JsonPullReader::string(std::string& out, std::size_t longest) {
  out.clear();
  return pieces([&](std::string_view piece) -> Status {
    if (piece.size() > longest - out.size()) return fail(ErrorCode::unsupported, "a string has more than {} bytes", longest);
    out += piece;
    return {};
  });
}

Status JsonPullReader::skip_string() {
  return pieces([](std::string_view) -> Status { return {}; });
}

Result<std::string_view> JsonPullReader::character(char (&out)[4]) {
  std::size_t size = 0;
  do {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    out[size++] = *at_++;
  } while (size < 4 && utf8_step({out, size}).kind == Utf8Kind::incomplete);
  if (const Utf8Step step = utf8_step({out, size}); step.kind != Utf8Kind::valid || step.size != size) return error("a string is not UTF-8");
  return std::string_view(out, size);
}

Result<std::uint32_t> JsonPullReader::four_digits() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    const char c = *at_;
    const char lower = static_cast<char>(c | 0x20);
    if (!is_json_digit(c) && (lower < 'a' || lower > 'f')) return error("an escape \\u needs four hexadecimal digits");
    code = code * 16 + static_cast<std::uint32_t>(is_json_digit(c) ? c - '0' : lower - 'a' + 10);
    ++at_;
  }
  return code;
}

Result<std::uint32_t> JsonPullReader::escape() {
  if (at_ == last_) TESSERA_TRY_STATUS(need());
  const char c = *at_++;
  constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  if (const std::size_t i = from.find(c); i != from.npos) return static_cast<std::uint32_t>(to[i]);
  if (c != 'u') return error("an unknown escape stands in a string");
  TESSERA_TRY(const std::uint32_t code, four_digits());
  if (code < 0xD800 || code > 0xDFFF) return code;
  if (code < 0xDC00) {
    for (const char wanted : {'\\', 'u'}) {
      if (at_ == last_) TESSERA_TRY_STATUS(need());
      if (*at_ != wanted) return error("a string has half a surrogate pair");
      ++at_;
    }
    TESSERA_TRY(const std::uint32_t low, four_digits());
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  return error("a string has half a surrogate pair");
}

// Reads a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?  If `out` is not nullptr, appends the number's characters to it.
Status JsonPullReader::number_text(std::string* out) {
  TESSERA_TRY(char c, peek());
  const auto take = [&]() -> Status {  // sets c to the next character; '\0' at the text's end
    if (out != nullptr) {
      if (out->size() == kLongestNumber) return fail(ErrorCode::unsupported, "a number has more than {} characters", kLongestNumber);
      out->push_back(c);
    }
    ++at_;
    if (at_ == last_) {
      TESSERA_TRY(const bool there, more());
      c = there ? *at_ : '\0';
    } else {
      c = *at_;
    }
    return {};
  };
  const auto digits = [&]() -> Status {
    if (!is_json_digit(c)) return error("a digit is expected here");
    while (is_json_digit(c)) TESSERA_TRY_STATUS(take());
    return {};
  };
  if (c == '-') TESSERA_TRY_STATUS(take());
  if (c == '0') {
    TESSERA_TRY_STATUS(take());
  } else {
    TESSERA_TRY_STATUS(digits());
  }
  if (c == '.') {
    TESSERA_TRY_STATUS(take());
    TESSERA_TRY_STATUS(digits());
  }
  if (c == 'e' || c == 'E') {
    TESSERA_TRY_STATUS(take());
    if (c == '+' || c == '-') TESSERA_TRY_STATUS(take());
    TESSERA_TRY_STATUS(digits());
  }
  return {};
}

Result<std::string_view> JsonPullReader::written_number() {
  number_.clear();
  TESSERA_TRY_STATUS(number_text(&number_));
  return std::string_view(number_);
}

Result<std::int64_t> JsonPullReader::integer() {
  TESSERA_TRY(const std::string_view written, written_number());
  std::int64_t value = 0;
  const char* const to = written.data() + written.size();
  const auto [end, failed] = std::from_chars(written.data(), to, value);
  if (failed != std::errc() || end != to) return error("an integer of 64 bits is expected here");
  return value;
}

Result<std::uint64_t> JsonPullReader::unsigned_integer() {
  TESSERA_TRY(const char first, peek());
  if (!is_json_digit(first)) return error("an integer from 0 on is expected here");
  TESSERA_TRY(const std::string_view written, written_number());
  if (at_ != last_ && written == "0" && is_json_digit(*at_)) return error("a number begins with 0");
  std::uint64_t value = 0;
  const char* const to = written.data() + written.size();
  const auto [end, failed] = std::from_chars(written.data(), to, value);
  if (failed != std::errc()) return error("a number is larger than 64 bits hold");
  if (end != to) return error("an integer is expected here, not a fraction");
  return value;
}

Result<double> JsonPullReader::number() {
  TESSERA_TRY(const std::string_view written, written_number());
  double value = 0;
  const auto [end, failed] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (failed == std::errc()) return value;
  const bool small = written.find("e-") != written.npos || written.find("E-") != written.npos;
  return std::copysign(small ? 0.0 : HUGE_VAL, written.front() == '-' ? -1.0 : 1.0);
}

Status JsonPullReader::word(std::string_view text) {
  for (const char c : text) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    if (*at_ != c) return fail(ErrorCode::corrupt_file, "the JSON text has an unknown word where '{}' is expected", text);
    ++at_;
  }
  return {};
}

Result<bool> JsonPullReader::boolean() {
  TESSERA_TRY(const char c, peek());
  TESSERA_TRY_STATUS(word(c == 'f' ? "false" : "true"));
  return c != 'f';
}

Status JsonPullReader::null() {
  TESSERA_TRY([[maybe_unused]] const char c, peek());
  return word("null");
}

// Skips a value with everything in it. Needs no recursion: `closers` has the closing bracket of each array and object that was entered and
// not left, so a hostile text cannot use up the stack.
Status JsonPullReader::skip() {
  std::string closers;
  for (;;) {
    TESSERA_TRY(const Type here, type());
    bool entered = false;
    switch (here) {
      case Type::object:
      case Type::array:
        if (closers.size() == kDeepestSkipped) return fail(ErrorCode::corrupt_file, "values are nested deeper than {}", kDeepestSkipped);
        ++at_;
        closers.push_back(here == Type::object ? '}' : ']');
        entered = true;
        break;
      case Type::string: TESSERA_TRY_STATUS(skip_string()); break;
      case Type::number: TESSERA_TRY_STATUS(number_text(nullptr)); break;
      case Type::boolean: {
        TESSERA_TRY([[maybe_unused]] const bool value, boolean());
        break;
      }
      case Type::null: TESSERA_TRY_STATUS(null()); break;
    }
    for (;; entered = false) {  // each round goes to the next value that is to be read, and leaves arrays and objects that end here
      if (closers.empty()) return {};
      first_ = entered;
      TESSERA_TRY(const bool has_more, next(closers.back()));
      if (has_more) break;
      closers.pop_back();
    }
    if (closers.back() == '}') {
      TESSERA_TRY_STATUS(skip_string());
      TESSERA_TRY_STATUS(expect(':'));
    }
  }
}

Result<std::string_view> JsonPullReader::skipped() {
  TESSERA_TRY([[maybe_unused]] const char c, peek());
  const char* const begin = at_;
  TESSERA_TRY_STATUS(skip());
  return std::string_view(begin, static_cast<std::size_t>(at_ - begin));
}

Status JsonPullReader::end() {
  for (;;) {
    TESSERA_TRY(const bool there, more());
    if (!there) return {};
    if (!is_json_space(*at_)) return error("something follows the JSON text");
    ++at_;
  }
}

}  // namespace tessera::detail
