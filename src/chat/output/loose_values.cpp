#include "chat/output/loose_values.hpp"

#include <cctype>

namespace tessera::output {
namespace {

constexpr std::string_view kQuote = "<|\"|>";
constexpr int kDeepest = 100;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

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
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return Json(std::move(out));
      }
      if (c != '\\' || at_ + 1 == text_.size()) {
        out += c;
        continue;
      }
      const char e = text_[++at_];
      constexpr std::string_view from = "nrtbf", to = "\n\r\t\b\f";
      const std::size_t i = from.find(e);
      if (i == from.npos && e != '\\' && e != '\'' && e != '"') out += '\\';
      out += i != from.npos ? to[i] : e;
    }
    return std::nullopt;
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
        key = bare();
        if (key.empty()) return std::nullopt;
      }
      if (!skip(":")) return std::nullopt;
      auto one = value(depth + 1);
      if (!one) return std::nullopt;
      out.set(key, *std::move(one));
    }
    return out;
  }

  // true, None, 12, 1.5e3
  std::optional<Json> word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '+')) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (text == "true" || text == "True") return Json(true);
    if (text == "false" || text == "False") return Json(false);
    if (text == "null" || text == "None") return Json();
    auto number = Json::parse(text);
    if (!number) return std::nullopt;
    return *std::move(number);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Json> loose_value(std::string_view text) {
  Reader reader(text);
  auto value = reader.value();
  return value && reader.at_end() ? value : std::nullopt;
}

std::optional<std::pair<std::string, Json>> python_call(std::string_view text) {
  Reader reader(text);
  auto call = reader.call();
  return call && reader.at_end() ? call : std::nullopt;
}

std::optional<std::size_t> python_call_size(std::string_view text) {
  std::size_t depth = 0;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      else if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth <= 1) return at + 1;
      --depth;
    }
  }
  return std::nullopt;
}

}  // namespace tessera::output
