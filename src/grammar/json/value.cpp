#include "grammar/json/value.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "grammar/fuel.hpp"
#include "grammar/regex/number.hpp"
#include "core/utf8.hpp"

namespace tessera::grammar {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read() {
    Json out = value(0);
    space();
    if (at_ < text_.size()) error("something follows the value");
    return out;
  }

 private:
  [[noreturn]] void error(const char* what) const {
    fail(ErrorCode::invalid_argument, fmt::format("not JSON: {}", what), fmt::format("byte {}", at_));
  }
  void space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view s) noexcept {
    if (!text_.substr(at_).starts_with(s)) return false;
    at_ += s.size();
    return true;
  }

  Json value(std::size_t depth) {
    if (depth > kDeepestJson) error("it is nested too deeply");
    space();
    Json out;
    if (at_ >= text_.size()) error("it ends early");
    switch (text_[at_]) {
      case '{': object(out, depth); break;
      case '[': array(out, depth); break;
      case '"':
        out.type = Json::Type::string;
        out.text = string();
        break;
      case 't':
      case 'f':
        out.type = Json::Type::boolean;
        out.boolean = text_[at_] == 't';
        if (!take(out.boolean ? "true" : "false")) error("an unknown word");
        break;
      case 'n':
        if (!take("null")) error("an unknown word");
        break;
      default:
        out.type = Json::Type::number;
        out.text = number();
    }
    return out;
  }

  void object(Json& out, std::size_t depth) {
    out.type = Json::Type::object;
    ++at_;
    space();
    if (take("}")) return;
    std::unordered_set<std::string> keys;
    do {
      space();
      if (at_ >= text_.size() || text_[at_] != '"') error("a key was expected");
      std::string key = string();
      if (!keys.insert(key).second) error("a key occurs twice in an object");
      space();
      if (!take(":")) error("a colon was expected");
      out.members.push_back({std::move(key), value(depth + 1)});
      space();
    } while (take(","));
    if (!take("}")) error("a comma or a closing brace was expected");
  }

  void array(Json& out, std::size_t depth) {
    out.type = Json::Type::array;
    ++at_;
    space();
    if (take("]")) return;
    do {
      out.items.push_back(value(depth + 1));
      space();
    } while (take(","));
    if (!take("]")) error("a comma or a closing bracket was expected");
  }

  std::string number() {
    const std::size_t from = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == first) error("a value was expected");
    };
    take("-");
    if (!take("0")) digits();
    if (take(".")) digits();
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      digits();
    }
    return std::string(text_.substr(from, at_ - from));
  }

  std::uint32_t hex() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
      if (digit < 0) error("an escape lacks a hexadecimal digit");
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
  }

  std::string string() {
    std::string out;
    for (++at_;;) {
      if (at_ >= text_.size()) error("a string without its closing quote");
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) error("a control character in a string");
      ++at_;
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_++] : '\0';
      constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
      if (const auto i = names.find(escape); escape != '\0' && i != std::string_view::npos) {
        out += values[i];
      } else if (escape == 'u') {
        std::uint32_t code = hex();
        if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
          const std::uint32_t low = hex();
          if (low < 0xDC00 || low > 0xDFFF) error("half of a surrogate pair");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xD800 && code < 0xE000) {
          error("half of a surrogate pair");
        }
        detail::append_utf8(out, code);
      } else {
        error("an unknown escape");
      }
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json parse_json(std::string_view text) { return Reader(text).read(); }

bool same_value(const Json& a, const Json& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Json::Type::null: return true;
    case Json::Type::boolean: return a.boolean == b.boolean;
    case Json::Type::string: return a.text == b.text;
    case Json::Type::number: {
      const auto x = Decimal::parse(a.text), y = Decimal::parse(b.text);
      return x && y ? *x == *y : a.text == b.text;
    }
    case Json::Type::array:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_value);
    case Json::Type::object:
      return a.members.size() == b.members.size() &&
             std::all_of(a.members.begin(), a.members.end(), [&](const auto& member) {
               const Json* other = b.find(member.name);
               return other != nullptr && same_value(member.value, *other);
             });
  }
  return false;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace tessera::grammar
