// Parses a JSON text (RFC 8259).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <tessera/json/json.hpp>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "json/spelling.hpp"

namespace tessera {
namespace {

using namespace detail;

constexpr int kDeepest = 1000;  // the largest JsonParseOptions::deepest, because each level of nesting takes stack

class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonParseOptions& options) : text_(text), options_(options) {}

  Result<Json> run() {
    Json value;
    TESSERA_TRY_STATUS(parse(value, 0));
    skip_space();
    if (at_ != text_.size()) return error("something follows the value");
    return value;
  }

 private:
  Error error(std::string_view what) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    return error_at(ErrorCode::invalid_argument, fmt::format("JSON, line {}, column {}", line, column), "{}", what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool skip(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool skip_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status parse(Json& out, int depth) {
    if (depth > std::min(options_.deepest, kDeepest)) return error("nested too deep");
    if (values_++ == options_.most_values) return error(fmt::format("more than {} values", options_.most_values));
    skip_space();
    if (at_ == text_.size()) return error("a value is missing");
    switch (text_[at_]) {
      case '{': return object(out, depth);
      case '[': return array(out, depth);
      case '"': {
        std::string text;
        TESSERA_TRY_STATUS(string(text));
        out = Json(std::move(text));
        return {};
      }
      case 't':
        if (!skip_word("true")) break;
        out = Json(true);
        return {};
      case 'f':
        if (!skip_word("false")) break;
        out = Json(false);
        return {};
      case 'n':
        if (!skip_word("null")) break;
        out = Json();
        return {};
      default: return number(out);
    }
    return error("no JSON value begins like this");
  }

  Status array(Json& out, int depth) {
    ++at_;
    Json::Array elements;
    skip_space();
    if (!skip(']')) {
      do {
        TESSERA_TRY_STATUS(parse(elements.emplace_back(), depth + 1));
        skip_space();
      } while (skip(','));
      if (!skip(']')) return error("expected ',' or ']'");
    }
    out = Json(std::move(elements));
    return {};
  }

  Status object(Json& out, int depth) {
    ++at_;
    Json::Object members;
    std::vector<Key> keys;
    skip_space();
    if (!skip('}')) {
      do {
        skip_space();
        if (at_ == text_.size() || text_[at_] != '"') return error("expected a key in quotes");
        keys.push_back({members.size(), at_});
        auto& [key, value] = members.emplace_back();
        TESSERA_TRY_STATUS(string(key));
        skip_space();
        if (!skip(':')) return error("expected ':'");
        TESSERA_TRY_STATUS(parse(value, depth + 1));
        skip_space();
      } while (skip(','));
      if (!skip('}')) return error("expected ',' or '}'");
      TESSERA_TRY_STATUS(single_keys(members, keys));
    }
    out = Json(std::move(members));
    return {};
  }

  struct Key {
    std::size_t member;  // index among the object's members
    std::size_t at;      // offset of the key in the text
  };

  // Treats keys that an object has several times. If refuse_repeated_keys is set: returns an error. Otherwise one member is left: at the
  // place of the first occurrence, with the value of the last one.
  Status single_keys(Json::Object& members, std::vector<Key>& keys) {
    const auto name = [&](const Key& key) -> const std::string& { return members[key.member].first; };
    const auto same = [&](const Key& a, const Key& b) { return name(a) == name(b); };
    const auto by_member = [](const Key& a, const Key& b) { return a.member < b.member; };
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
      const int order = name(a).compare(name(b));
      return order < 0 || (order == 0 && by_member(a, b));
    });
    const auto twice = std::adjacent_find(keys.begin(), keys.end(), same);
    if (twice == keys.end()) return {};
    if (options_.refuse_repeated_keys) {
      at_ = std::next(twice)->at;
      return error(fmt::format("the key {} stands twice in an object", json_string(name(*twice))));
    }
    std::vector<Key> first;
    for (const Key& key : keys) {
      if (first.empty() || !same(first.back(), key)) first.push_back(key);
      else members[first.back().member].second = std::move(members[key.member].second);
    }
    std::sort(first.begin(), first.end(), by_member);
    Json::Object single;
    for (const Key& key : first) single.push_back(std::move(members[key.member]));
    members = std::move(single);
    return {};
  }

  Status number(Json& out) {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ - first;
    };
    skip('-');
    const std::size_t first = at_;
    const std::size_t whole = digits();
    if (whole == 0 || (whole > 1 && text_[first] == '0')) {
      at_ = begin;
      return error(whole == 0 ? "no JSON value begins like this" : "a number with a zero in front");
    }
    bool floating = false;
    if (skip('.')) {
      floating = true;
      if (digits() == 0) return error("digits are missing behind the point");
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      floating = true;
      ++at_;
      if (!skip('-')) skip('+');
      if (digits() == 0) return error("digits are missing in the exponent");
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    const char *from = written.data(), *to = from + written.size();
    std::int64_t integer = 0;
    if (!floating && std::from_chars(from, to, integer).ec == std::errc() && !(options_.numbers_as_written && written == "-0")) {
      out = Json(integer);
      return {};
    }
    if (!floating || options_.numbers_as_written) {
      out = Json(Json::WrittenNumber{std::string(written)});
      return {};
    }
    double value = 0;
    if (std::from_chars(from, to, value).ec != std::errc()) {  // too large or too small for a double: infinity or 0
      const bool small = written.find("e-") != written.npos || written.find("E-") != written.npos;
      value = std::copysign(small ? 0.0 : HUGE_VAL, *from == '-' ? -1.0 : 1.0);
    }
    out = Json(value);
    return {};
  }

  Result<std::uint32_t> four_digits() {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 4, text_.size()), value, 16);
    if (failed != std::errc() || end != text_.data() + at_ + 4) return error("\\u needs four hexadecimal digits");
    at_ += 4;
    return value;
  }

  Status string(std::string& out) {
    ++at_;
    for (;;) {
      if (at_ == text_.size()) return error("a string is never closed");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return {};
      }
      if (static_cast<unsigned char>(c) < 0x20) return error("a control character in a string");
      if (c == '\\') {
        TESSERA_TRY_STATUS(escape(out));
        continue;
      }
      const Utf8Step step = utf8_step(text_.substr(at_));
      if (step.kind != Utf8Kind::valid) return error("bytes that are not UTF-8");
      out.append(text_.substr(at_, step.size));
      at_ += step.size;
    }
  }

  Status escape(std::string& out) {
    ++at_;
    const char c = at_ < text_.size() ? text_[at_++] : 0;
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = from.find(c); i != from.npos && c != 0) {
      out += to[i];
      return {};
    }
    if (c != 'u') return error("an escape that JSON does not have");
    TESSERA_TRY(std::uint32_t value, four_digits());
    if (value >= 0xD800 && value < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const std::size_t second = at_;
      at_ += 2;
      TESSERA_TRY(const std::uint32_t low, four_digits());
      if (low >= 0xDC00 && low < 0xE000) {
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = second;
      }
    }
    const bool half = value >= 0xD800 && value < 0xE000;
    if (half && options_.refuse_half_pairs) return error("half of a surrogate pair");
    append_utf8(out, value);  // append_utf8() writes U+FFFD for a surrogate without its partner
    return {};
  }

  std::string_view text_;
  const JsonParseOptions& options_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;  // number of values that were begun
};

}  // namespace

Result<Json> Json::parse(std::string_view text, const JsonParseOptions& options) noexcept {
  return guard([&] { return JsonParser(text, options).run(); });
}

}  // namespace tessera
