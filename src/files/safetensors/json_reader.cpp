#include "files/safetensors/json_reader.hpp"

#include <algorithm>
#include <limits>

#include "core/printable.hpp"
#include "core/utf8.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {
namespace {

constexpr int kDeepestOfHeader = 100;

constexpr bool is_json_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
constexpr bool is_json_digit(char c) noexcept { return c >= '0' && c <= '9'; }
// Characters that stand in a string as they are, and are one byte long.
constexpr bool is_plain(char c) noexcept { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; }

}  // namespace

std::string JsonReader::place() const {
  return fmt::format("{}: offset {}{}{}", name_of(source_), offset(), subject_.empty() ? "" : ": ", subject_);
}

Status JsonReader::need() {
  if (at_ != last_) return {};
  if (next_ == end_) return fail(ErrorCode::corrupt_file, "the JSON text ends too early");
  if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "reading was cancelled");
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size(), end_ - next_));
  TESSERA_TRY_STATUS(source_.read(next_, std::as_writable_bytes(window_.first(count))));
  at_ = window_.data();
  last_ = at_ + count;
  next_ += count;
  return {};
}

Result<char> JsonReader::peek() {
  for (;;) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    if (!is_json_space(*at_)) return *at_;
    ++at_;
  }
}

Status JsonReader::expect(char c) {
  TESSERA_TRY(const char next, peek());
  if (next != c) {
    return fail(ErrorCode::corrupt_file, "the JSON text has '{}' where '{}' is expected",
                printable(std::string_view(&next, 1)), c);
  }
  ++at_;
  return {};
}

Result<bool> JsonReader::take(char c) {
  TESSERA_TRY(const char next, peek());
  if (next != c) return false;
  ++at_;
  return true;
}

Status JsonReader::finish() {
  while (at_ != last_ || next_ != end_) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    if (!is_json_space(*at_)) return fail(ErrorCode::corrupt_file, "something follows the JSON text");
    ++at_;
  }
  return {};
}

Status JsonReader::word(std::string_view text) {
  for (const char c : text) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    if (*at_ != c)
      return fail(ErrorCode::corrupt_file, "the JSON text has an unknown word where '{}' is expected", text);
    ++at_;
  }
  return {};
}

Result<bool> JsonReader::null() {
  TESSERA_TRY(const char next, peek());
  if (next != 'n') return false;
  TESSERA_TRY_STATUS(word("null"));
  return true;
}

Result<std::uint64_t> JsonReader::unsigned_integer() {
  TESSERA_TRY(const char first, peek());
  if (!is_json_digit(first)) return fail(ErrorCode::corrupt_file, "an integer from 0 on is expected here");
  std::uint64_t value = 0;
  // The byte behind the number always exists, because an object or array must be closed there.
  for (int digits = 0;; ++digits) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    const char c = *at_;
    if (c == '.' || c == 'e' || c == 'E')
      return fail(ErrorCode::corrupt_file, "an integer is expected here, not a fraction");
    if (!is_json_digit(c)) return value;
    if (digits == 1 && first == '0') return fail(ErrorCode::corrupt_file, "a number begins with 0");
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
      return fail(ErrorCode::corrupt_file, "a number is larger than 64 bits hold");
    }
    value = value * 10 + digit;
    ++at_;
  }
}

// Reads a number and forgets it: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
Status JsonReader::number() {
  const auto next = [&]() -> Result<char> {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    return *at_;
  };
  const auto digits = [&]() -> Status {
    TESSERA_TRY(char c, next());
    if (!is_json_digit(c)) return fail(ErrorCode::corrupt_file, "a digit is expected here");
    while (is_json_digit(c)) {
      ++at_;
      TESSERA_TRY(c, next());
    }
    return {};
  };
  TESSERA_TRY(char c, next());
  if (c == '-') {
    ++at_;
    TESSERA_TRY(c, next());
  }
  if (c == '0') {
    ++at_;
  } else {
    TESSERA_TRY_STATUS(digits());
  }
  TESSERA_TRY(c, next());
  if (c == '.') {
    ++at_;
    TESSERA_TRY_STATUS(digits());
    TESSERA_TRY(c, next());
  }
  if (c == 'e' || c == 'E') {
    ++at_;
    TESSERA_TRY(c, next());
    if (c == '+' || c == '-') ++at_;
    TESSERA_TRY_STATUS(digits());
  }
  return {};
}

Status JsonReader::skip(int depth) {
  TESSERA_TRY(const char next, peek());
  if (next == '"') return pieces([](std::string_view) -> Status { return {}; });
  if (next == '-' || is_json_digit(next)) return number();
  if (next == 't') return word("true");
  if (next == 'f') return word("false");
  if (next == 'n') return word("null");
  if (next != '{' && next != '[') return fail(ErrorCode::corrupt_file, "a JSON value is expected here");
  if (depth == kDeepestOfHeader)
    return fail(ErrorCode::corrupt_file, "values are nested deeper than {}", kDeepestOfHeader);
  if (next == '[') return elements([&] { return skip(depth + 1); });
  std::string key;
  return members(key, std::numeric_limits<std::uint16_t>::max(), [&] { return skip(depth + 1); });
}

Status JsonReader::string(std::string& out, std::size_t longest) {
  out.clear();
  return pieces([&](std::string_view piece) -> Status {
    if (piece.size() > longest - out.size()) {
      return fail(ErrorCode::unsupported, "a string has more than {} bytes", longest);
    }
    out += piece;
    return {};
  });
}

template <class Sink>
Status JsonReader::pieces(Sink&& sink) {
  TESSERA_TRY_STATUS(expect('"'));
  for (;;) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    const char* const first = at_;
    while (at_ != last_ && is_plain(*at_)) ++at_;
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
    } else if (c < ' ') {
      return fail(ErrorCode::corrupt_file, "a control character stands in a string");
    } else {
      char bytes[4];
      TESSERA_TRY(const std::string_view text, character(bytes));
      TESSERA_TRY_STATUS(sink(text));
    }
  }
}

Result<std::string_view> JsonReader::character(char (&out)[4]) {
  std::size_t size = 0;
  do {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    out[size++] = *at_++;
  } while (size < 4 && utf8_step({out, size}).kind == Utf8Kind::incomplete);
  if (const Utf8Step step = utf8_step({out, size}); step.kind != Utf8Kind::valid || step.size != size) {
    return fail(ErrorCode::corrupt_file, "a string is not UTF-8");
  }
  return std::string_view(out, size);
}

Result<std::uint32_t> JsonReader::four_digits() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_ == last_) TESSERA_TRY_STATUS(need());
    const char c = *at_;
    const char lower = static_cast<char>(c | 0x20);
    if (!is_json_digit(c) && (lower < 'a' || lower > 'f'))
      return fail(ErrorCode::corrupt_file, "an escape \\u needs four hexadecimal digits");
    code = code * 16 + static_cast<std::uint32_t>(is_json_digit(c) ? c - '0' : lower - 'a' + 10);
    ++at_;
  }
  return code;
}

Result<std::uint32_t> JsonReader::escape() {
  if (at_ == last_) TESSERA_TRY_STATUS(need());
  switch (const char c = *at_++; c) {
    case '"':
    case '\\':
    case '/':
      return static_cast<std::uint32_t>(c);
    case 'b':
      return std::uint32_t{'\b'};
    case 'f':
      return std::uint32_t{'\f'};
    case 'n':
      return std::uint32_t{'\n'};
    case 'r':
      return std::uint32_t{'\r'};
    case 't':
      return std::uint32_t{'\t'};
    case 'u':
      break;
    default:
      return fail(ErrorCode::corrupt_file, "an unknown escape stands in a string");
  }
  TESSERA_TRY(const std::uint32_t code, four_digits());
  if (code < 0xD800 || code > 0xDFFF) return code;
  if (code < 0xDC00) {
    for (const char c : {'\\', 'u'}) {
      if (at_ == last_) TESSERA_TRY_STATUS(need());
      if (*at_ != c) return fail(ErrorCode::corrupt_file, "a string has half a surrogate pair");
      ++at_;
    }
    TESSERA_TRY(const std::uint32_t low, four_digits());
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  return fail(ErrorCode::corrupt_file, "a string has half a surrogate pair");
}

}  // namespace tessera::detail
