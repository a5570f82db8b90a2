#include "json/pull_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kDeepestSkipped = 1000;  // arrays and objects that a skipped value may have around a value

}  // namespace

Error JsonPullReader::error(std::string_view what) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // 0 if there is no newline
  return make_error(ErrorCode::corrupt_file, "{} (line {}, column {})", what, line, at_ - begin + 1);
}

void JsonPullReader::skip_space() noexcept {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
}

bool JsonPullReader::skip_char(char c) noexcept {
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

Result<JsonPullReader::Type> JsonPullReader::type() {
  skip_space();
  if (at_ == text_.size()) return error("the JSON text ends where a value should be");
  switch (text_[at_]) {
    case '{': return Type::object;
    case '[': return Type::array;
    case '"': return Type::string;
    case 't':
    case 'f': return Type::boolean;
    case 'n': return Type::null;
    default: break;
  }
  if (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9')) return Type::number;
  return error("no JSON value begins so");
}

Status JsonPullReader::enter(char bracket, const char* name) {
  skip_space();
  if (!skip_char(bracket)) return error(name);
  first_ = true;
  return {};
}

Status JsonPullReader::begin_object() { return enter('{', "expected an object"); }
Status JsonPullReader::begin_array() { return enter('[', "expected an array"); }

Result<bool> JsonPullReader::next(char bracket) {
  skip_space();
  const bool first = first_;
  first_ = false;
  if (skip_char(bracket)) return false;
  if (!first && !skip_char(',')) return error(bracket == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
  skip_space();
  return true;
}

Result<bool> JsonPullReader::next_key(std::string& key) {
  TESSERA_TRY(const bool more, next('}'));
  if (!more) return false;
  if (at_ == text_.size() || text_[at_] != '"') return error("expected a key in quotes");
  TESSERA_TRY_STATUS(string(key));
  skip_space();
  if (!skip_char(':')) return error("expected ':'");
  return true;
}

Result<bool> JsonPullReader::next_element() { return next(']'); }

Status JsonPullReader::string(std::string& out) {
  skip_space();
  if (!skip_char('"')) return error("expected a string");
  out.clear();
  for (;;) {
    const std::size_t begin = at_;  // of characters that are copied as they are
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<unsigned char>(text_[at_]) >= 0x20) {
      if (static_cast<unsigned char>(text_[at_]) < 0x80) {
        ++at_;
        continue;
      }
      const Utf8Step step = utf8_step(text_.substr(at_));
      if (step.kind != Utf8Kind::valid) return error("bytes that are not UTF-8 in a string");
      at_ += step.size;
    }
    out.append(text_.substr(begin, at_ - begin));
    if (at_ == text_.size()) return error("a string is never closed");
    if (skip_char('"')) return {};
    if (text_[at_] != '\\') return error("a control character in a string");
    TESSERA_TRY_STATUS(escape(out));
  }
}

Result<std::uint32_t> JsonPullReader::four_digits() {
  std::uint32_t value = 0;
  const char* const from = text_.data() + at_;
  const char* const to = text_.data() + std::min(at_ + 4, text_.size());
  const auto [end, failed] = std::from_chars(from, to, value, 16);
  if (failed != std::errc() || end != from + 4) return error("\\u needs four hexadecimal digits");
  at_ += 4;
  return value;
}

Status JsonPullReader::escape(std::string& out) {
  ++at_;
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  if (const std::size_t i = from.find(c); c != '\0' && i != from.npos) {
    out += to[i];
    return {};
  }
  if (c != 'u') return error("an escape that JSON does not have");
  TESSERA_TRY(std::uint32_t value, four_digits());
  if (value >= 0xD800 && value < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
    at_ += 2;
    TESSERA_TRY(const std::uint32_t low, four_digits());
    if (low < 0xDC00 || low >= 0xE000) return error("half of a surrogate pair");
    value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  }
  if (value >= 0xD800 && value < 0xE000) return error("half of a surrogate pair");
  append_utf8(out, value);
  return {};
}

Result<std::string_view> JsonPullReader::number_text() {
  skip_space();
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - first;
  };
  (void)skip_char('-');
  const std::size_t first = at_;
  const std::size_t whole = digits();
  if (whole == 0) return error("expected a number");
  if (whole > 1 && text_[first] == '0') return error("a number with a zero in front");
  if (skip_char('.') && digits() == 0) return error("digits are missing behind the point");
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (!skip_char('-')) (void)skip_char('+');
    if (digits() == 0) return error("digits are missing in the exponent");
  }
  return text_.substr(begin, at_ - begin);
}

Result<std::int64_t> JsonPullReader::integer() {
  TESSERA_TRY(const std::string_view written, number_text());
  std::int64_t value = 0;
  const char* const to = written.data() + written.size();
  const auto [end, failed] = std::from_chars(written.data(), to, value);
  if (failed != std::errc() || end != to) return error("expected an integer of 64 bits");
  return value;
}

Result<double> JsonPullReader::number() {
  TESSERA_TRY(const std::string_view written, number_text());
  double value = 0;
  const auto [end, failed] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (failed == std::errc()) return value;
  const bool small = written.find("e-") != written.npos || written.find("E-") != written.npos;
  return std::copysign(small ? 0.0 : HUGE_VAL, written.front() == '-' ? -1.0 : 1.0);
}

Result<bool> JsonPullReader::boolean() {
  skip_space();
  for (const bool value : {true, false}) {
    const std::string_view word = value ? "true" : "false";
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return value;
  }
  return error("expected true or false");
}

Status JsonPullReader::null() {
  skip_space();
  if (!text_.substr(at_).starts_with("null")) return error("expected null");
  at_ += 4;
  return {};
}

Status JsonPullReader::skip_string() {
  ++at_;
  for (;;) {
    at_ = std::min(text_.find_first_of("\"\\", at_), text_.size());
    if (at_ == text_.size()) return error("a string is never closed");
    if (skip_char('"')) return {};
    at_ = std::min(at_ + 2, text_.size());
  }
}

// Walks without recursion: `closers` has the brackets that are still to come.
Result<std::string_view> JsonPullReader::skip() {
  skip_space();
  const std::size_t begin = at_;
  std::string closers;
  for (;;) {
    TESSERA_TRY(const Type here, type());
    bool entered = false;
    switch (here) {
      case Type::object:
      case Type::array:
        if (closers.size() == kDeepestSkipped) return error("arrays and objects are nested too deep");
        ++at_;
        closers.push_back(here == Type::object ? '}' : ']');
        entered = true;
        break;
      case Type::string: TESSERA_TRY_STATUS(skip_string()); break;
      case Type::number: {
        TESSERA_TRY([[maybe_unused]] const std::string_view written, number_text());
        break;
      }
      case Type::boolean: {
        TESSERA_TRY([[maybe_unused]] const bool value, boolean());
        break;
      }
      case Type::null: TESSERA_TRY_STATUS(null()); break;
    }
    for (;; entered = false) {  // goes to the next value that is to be read, leaving what ends here
      if (closers.empty()) return text_.substr(begin, at_ - begin);
      skip_space();
      const char closer = closers.back();
      if (!skip_char(closer)) break;
      closers.pop_back();
    }
    if (!entered && !skip_char(',')) return error("expected ',' or the end of an array or object");
    if (closers.back() == '}') {
      skip_space();
      if (at_ == text_.size() || text_[at_] != '"') return error("expected a key in quotes");
      TESSERA_TRY_STATUS(skip_string());
      skip_space();
      if (!skip_char(':')) return error("expected ':'");
    }
  }
}

Status JsonPullReader::end() {
  skip_space();
  if (at_ != text_.size()) return error("something follows the JSON value");
  return {};
}

}  // namespace tessera::detail
