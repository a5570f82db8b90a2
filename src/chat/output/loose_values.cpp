#include "chat/output/loose_values.hpp"

#include <algorithm>
#include <charconv>
#include <cctype>
#include <cmath>

#include "core/utf8.hpp"

namespace tessera::output {
namespace {

constexpr std::string_view kQuote = "<|\"|>";
constexpr int kDeepest = 100;

bool is_name(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_' || c == '.' || c == '-';
}

class Reader {
 public:
  enum class Words { refused, texts };  // texts: a word that is no number and no constant is read as a string
  explicit Reader(std::string_view text, Words words = Words::refused) : text_(text), words_(words) {}

  [[nodiscard]] bool at_end() {
    space();
    return at_ == text_.size();
  }

  std::optional<Json> value(int depth = 0) {
    space();
    if (depth > kDeepest || at_ == text_.size()) return std::nullopt;
    if (here(kQuote)) return string();
    switch (text_[at_]) {
      case '"':
      case '\'': return string();
      case '[':
      case '(': return list(text_[at_] == '[' ? ']' : ')', depth);
      case '{': return dict(depth);
      default: return word();
    }
  }

  std::optional<std::pair<std::string, Json>> call() {
    space();
    std::string name = bare();
    if (name.empty() || !skip("(")) return std::nullopt;
    Json arguments = Json::object();
    if (!skip(")")) {
      do {
        const std::string key = bare();
        if (key.empty() || !skip("=")) return std::nullopt;
        auto one = value();
        if (!one) return std::nullopt;
        arguments.set(key, *std::move(one));
      } while (skip(","));
      if (!skip(")")) return std::nullopt;
    }
    return std::pair(std::move(name), std::move(arguments));
  }

 private:
  void space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  [[nodiscard]] bool here(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool skip(std::string_view what) {
    space();
    if (!here(what)) return false;
    at_ += what.size();
    return true;
  }
  std::string bare() {
    space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::optional<Json> string() {
    if (here(kQuote)) {
      const std::size_t begin = at_ + kQuote.size(), end = text_.find(kQuote, begin);
      if (end == text_.npos) return std::nullopt;
      at_ = end + kQuote.size();
      return Json(std::string(text_.substr(begin, end - begin)));
    }
    std::string out;
    do {
      if (!quoted(out, text_[at_++])) return std::nullopt;
      space();
    } while (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''));  // as in Python, adjacent strings ('a' 'b') are one
    return Json(std::move(out));
  }

  // Appends the string's text. Reading begins after the opening quote, and ends after the closing one.
  bool quoted(std::string& out, char quote) {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return true;
      if (c == '\\' && at_ < text_.size()) escape(out);
      else out += c;
    }
    return false;
  }

  // Reads at most `most` digits of a number in this base, and returns the number; nullopt if there are fewer than `least` digits.
  std::optional<std::uint32_t> digits(int base, std::size_t least, std::size_t most) {
    std::uint32_t value = 0;
    const char *from = text_.data() + at_, *to = from + std::min(most, text_.size() - at_);
    const auto [end, error] = std::from_chars(from, to, value, base);
    if (error != std::errc() || static_cast<std::size_t>(end - from) < least) return std::nullopt;
    at_ += static_cast<std::size_t>(end - from);
    return value;
  }

  // Reads one of Python's escapes. If Python does not have this escape, the backslash and the character both stay.
  void escape(std::string& out) {
    const char c = text_[at_];
    constexpr std::string_view from = "nrtbfav\\'\"", to = "\n\r\t\b\f\a\v\\'\"";
    if (const std::size_t i = from.find(c); i != from.npos) {
      ++at_;
      out += to[i];
      return;
    }
    if (c == '\n') {  // a backslash at the end of a line continues the line
      ++at_;
      return;
    }
    if (c >= '0' && c <= '7') return detail::append_utf8(out, *digits(8, 1, 3));
    const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::size_t begin = at_++;
    auto code = size > 0 ? digits(16, size, size) : std::nullopt;
    if (code && *code >= 0xD800 && *code < 0xDC00 && here("\\u")) {  // the first half of a surrogate pair
      const std::size_t behind = at_;
      at_ += 2;
      const auto low = digits(16, 4, 4);
      if (low && *low >= 0xDC00 && *low < 0xE000) code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      else at_ = behind;
    }
    if (code && *code <= 0x10FFFF) return detail::append_utf8(out, *code);
    at_ = begin;
    out += '\\';
  }

  std::optional<Json> list(char close, int depth) {
    ++at_;
    Json::Array out;
    const std::string_view end(&close, 1);
    while (!skip(end)) {
      if (!out.empty() && !skip(",")) return std::nullopt;
      if (skip(end)) break;
      auto one = value(depth + 1);
      if (!one) return std::nullopt;
      out.push_back(*std::move(one));
    }
    return Json(std::move(out));
  }

  std::optional<Json> dict(int depth) {
    ++at_;
    Json out = Json::object();
    bool first = true;
    while (!skip("}")) {
      if (!first && !skip(",")) return std::nullopt;
      if (skip("}")) break;
      first = false;
      space();
      std::string key;
      if (at_ < text_.size() && (here(kQuote) || text_[at_] == '"' || text_[at_] == '\'')) {
        const auto quoted = string();
        if (!quoted) return std::nullopt;
        key = *quoted->string();
      } else {
        key = bare_key();
        if (key.empty()) return std::nullopt;
      }
      if (!skip(":")) return std::nullopt;
      auto one = value(depth + 1);
      if (!one) return std::nullopt;
      out.set(key, *std::move(one));
    }
    return out;
  }

  // Reads a key that has no quotes: everything up to the colon.
  std::string bare_key() {
    space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(":,{}[]<>\"").find(text_[at_]) == std::string_view::npos) ++at_;
    std::size_t end = at_;
    while (end > begin && std::isspace(static_cast<unsigned char>(text_[end - 1])) != 0) --end;
    return std::string(text_.substr(begin, end - begin));
  }

  // Reads a constant or a number: true, None, 12, 1.5e3. A number that JSON cannot express stays a text.
  std::optional<Json> word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '+')) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (text == "true" || text == "True") return Json(true);
    if (text == "false" || text == "False") return Json(false);
    if (text == "null" || text == "None") return Json();
    auto number = Json::parse(text);
    if (!number) number = Json::parse(as_json_number(text));
    if (!number && words_ == Words::texts) {
      at_ = begin;
      const std::string word = bare_key();
      return word.empty() ? std::nullopt : std::optional(Json(word));
    }
    if (!number) return std::nullopt;
    return is_finite(*number) ? *std::move(number) : Json(text);
  }

  // Converts numbers that Python allows but JSON does not (1_000, +5, .5, 5.) to JSON's form.
  static std::string as_json_number(std::string_view text) {
    std::string out(text);
    std::erase(out, '_');
    if (out.starts_with('+')) out.erase(0, 1);
    if (const std::size_t point = out.find('.'); point != out.npos) {
      if (point + 1 == out.size() || std::isdigit(static_cast<unsigned char>(out[point + 1])) == 0) out.insert(point + 1, "0");
      if (point == 0 || out[point - 1] == '-') out.insert(point, "0");
    }
    return out;
  }

  std::string_view text_;
  Words words_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Json> loose_value(std::string_view text) {
  Reader reader(text, Reader::Words::texts);
  auto value = reader.value();
  return value && reader.at_end() ? value : std::nullopt;
}

std::optional<Json> python_value(std::string_view text) {
  Reader reader(text);
  auto value = reader.value();
  return value && reader.at_end() ? value : std::nullopt;
}

std::optional<std::pair<std::string, Json>> python_call(std::string_view text) {
  Reader reader(text);
  auto call = reader.call();
  return call && reader.at_end() ? call : std::nullopt;
}

bool is_finite(const Json& value) {
  if (const double* number = value.number()) return std::isfinite(*number);
  if (const Json::Array* elements = value.elements()) return std::all_of(elements->begin(), elements->end(), is_finite);
  if (const Json::Object* members = value.members()) {
    return std::all_of(members->begin(), members->end(), [](const Json::Member& member) { return is_finite(member.second); });
  }
  return true;
}

std::optional<LooseExtent::End> LooseExtent::find(std::string_view text) {
  while (at_ < text.size()) {
    const char c = text[at_];
    if (quote_ == '<') {
      const std::size_t end = text.find(kQuote, at_);
      if (end == text.npos) {
        at_ = std::max(at_, text.size() - std::min(text.size(), kQuote.size() - 1));
        return std::nullopt;
      }
      at_ = end + kQuote.size();
      quote_ = 0;
      continue;
    }
    if (quote_ != 0) {
      if (c == '\\') {
        if (at_ + 1 == text.size()) return std::nullopt;
        ++at_;
      } else if (c == quote_) {
        quote_ = 0;
      }
      ++at_;
      continue;
    }
    if (c == '<') {
      const std::string_view rest = text.substr(at_);
      if (!rest.starts_with(kQuote) && kQuote.starts_with(rest)) return std::nullopt;
      if (!rest.starts_with(kQuote) || open_.empty()) return End{at_, true};
      quote_ = '<';
      at_ += kQuote.size();
      before_ = '"';
      continue;
    }
    // Gemma writes words without quotes, so a quote inside a word does not begin a string.
    const bool begins_value = std::string_view("([{,:=\"'").find(before_) != std::string_view::npos;
    if ((c == '"' || c == '\'') && begins_value && !open_.empty()) {
      quote_ = c;
    } else if (c == '(' || c == '[' || c == '{') {
      if (open_.empty() && c == '[') return End{at_, true};
      open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_.empty() || open_.back() != c) return End{at_, true};
      open_.pop_back();
      if (open_.empty()) return End{at_ + 1, false};
    }
    if (std::isspace(static_cast<unsigned char>(c)) == 0) before_ = c;
    ++at_;
  }
  return std::nullopt;
}

}  // namespace tessera::output
