#include "fields/lark.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

namespace {

constexpr std::size_t kMostBytes = 256 << 10;
constexpr int kMostDepth = 100;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Patterns of the terminals that %import takes from Lark's "common".
const std::map<std::string_view, std::string_view>& common() {
  static const std::map<std::string_view, std::string_view> terminals = {
      {"LF", "\\n"},         {"CR", "\\r"},       {"NEWLINE", "(?:\\r?\\n)+"}, {"WS", "[ \\t\\f\\r\\n]+"},
      {"WS_INLINE", "[ \\t]+"}, {"DIGIT", "[0-9]"}, {"HEXDIGIT", "[0-9a-fA-F]"}, {"INT", "[0-9]+"},
      {"SIGNED_INT", "[+-]?[0-9]+"}, {"LETTER", "[a-zA-Z]"}, {"WORD", "[a-zA-Z]+"}, {"CNAME", "[a-zA-Z_][a-zA-Z0-9_]*"},
      {"LCASE_LETTER", "[a-z]"}, {"UCASE_LETTER", "[A-Z]"},
      {"NUMBER", "(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
      {"ESCAPED_STRING", "\"(?:[^\"\\\\]|\\\\[\\s\\S])*\""}};
  return terminals;
}

void put_literal(std::string& out, char c) {
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
  out += c;
}

class Lark {
 public:
  Lark(std::string_view text, const std::string& field) : field_(field) { split(text); }

  std::string pattern() {
    if (!rules_.contains("start")) fail(1, "there is no rule \"start\"");
    return of_rule("start", 1);
  }

 private:
  struct Rule {
    std::string body;  // the text after the colon
    std::size_t line;
  };
  // A place in a rule's text.
  struct Cursor {
    std::string_view text;
    std::size_t at = 0, line = 0;
    int depth = 0;
  };

  [[noreturn]] void fail(std::size_t line, std::string_view why) const {
    throw ApiError(400, fmt::format("Line {} of this grammar: {}.", line, why), field_);
  }

  // Returns the line without its comment, "// ...". A "//" within a text or pattern is no comment.
  static std::string_view without_comment(std::string_view line) {
    char within = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (within != 0) {
        if (line[i] == '\\') ++i;
        else if (line[i] == within) within = 0;
      } else if (line[i] == '/' && i + 1 < line.size() && line[i + 1] == '/') {
        return line.substr(0, i);
      } else if (line[i] == '"' || line[i] == '/') {
        within = line[i];
      }
    }
    return line;
  }
  void split(std::string_view text) {
    Rule* rule = nullptr;
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = without_comment(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::size_t first = line.find_first_not_of(" \t\r");
      if (first == line.npos) continue;
      line.remove_prefix(first);
      if (line[0] == '%') {
        import(line, number);
        rule = nullptr;
        continue;
      }
      std::size_t begin = 0;
      while (begin < line.size() && (line[begin] == '?' || line[begin] == '!')) ++begin;
      std::size_t stop = begin;
      while (stop < line.size() && is_name(line[stop])) ++stop;
      std::size_t colon = stop;
      if (colon < line.size() && line[colon] == '.') {  // skips a priority
        do ++colon;
        while (colon < line.size() && (std::isdigit(static_cast<unsigned char>(line[colon])) != 0 || line[colon] == '-'));
      }
      colon = std::min(line.find_first_not_of(" \t", colon), line.size());
      if (stop > begin && colon < line.size() && line[colon] == ':') {
        rule = &rules_[std::string(line.substr(begin, stop - begin))];
        *rule = {std::string(line.substr(colon + 1)), number};
      } else if (rule != nullptr) {
        rule->body += ' ';
        rule->body += line;
      } else {
        fail(number, "this is neither a rule, \"name: ...\", nor %import");
      }
    }
  }
  void import(std::string_view line, std::size_t number) {
    constexpr std::string_view kImport = "%import common.";
    if (!line.starts_with(kImport)) fail(number, "of the statements that begin with %, only %import common.NAME is supported");
    std::string_view name = line.substr(kImport.size());
    name = name.substr(0, name.find_first_of(" \t\r"));
    if (!common().contains(name)) fail(number, fmt::format("there is no common.{} here", name));
    std::string alias(name);
    if (const std::size_t arrow = line.find("->"); arrow != line.npos) {
      const std::size_t begin = line.find_first_not_of(" \t", arrow + 2);
      alias = begin == line.npos ? alias : std::string(line.substr(begin, line.find_first_of(" \t\r", begin) - begin));
    }
    imported_[alias] = common().at(name);
  }

  std::string of_rule(const std::string& name, std::size_t line) {
    if (const auto found = done_.find(name); found != done_.end()) return found->second;
    if (const auto found = imported_.find(name); found != imported_.end()) return found->second;
    const auto found = rules_.find(name);
    if (found == rules_.end()) fail(line, fmt::format("there is no rule \"{}\"", name));
    if (std::ranges::find(open_, name) != open_.end()) {
      fail(found->second.line, fmt::format("\"{}\" refers to itself; a tool's input can only be held to a grammar whose rules do not", name));
    }
    open_.push_back(name);
    Cursor cursor{.text = found->second.body, .line = found->second.line, .depth = static_cast<int>(open_.size())};
    std::string pattern = fmt::format("(?:{})", alternatives(cursor));
    if (cursor.at < cursor.text.size()) fail(cursor.line, fmt::format("\"{}\" is not expected", cursor.text.substr(cursor.at, 20)));
    open_.pop_back();
    return done_[name] = std::move(pattern);
  }

  static void skip(Cursor& c) {
    while (c.at < c.text.size() && (c.text[c.at] == ' ' || c.text[c.at] == '\t' || c.text[c.at] == '\r')) ++c.at;
  }
  static bool next_is(Cursor& c, std::string_view what) {
    skip(c);
    return c.text.substr(c.at).starts_with(what);
  }
  std::string alternatives(Cursor& c) {
    if (++c.depth > kMostDepth) fail(c.line, "this is nested too deep");
    std::string pattern = sequence(c);
    while (next_is(c, "|")) {
      ++c.at;
      pattern += '|';
      pattern += sequence(c);
      check(pattern, c.line);
    }
    --c.depth;
    return pattern;
  }
  std::string sequence(Cursor& c) {
    std::string pattern;
    for (;;) {
      skip(c);
      if (c.at == c.text.size() || c.text[c.at] == '|' || c.text[c.at] == ')' || c.text[c.at] == ']') return pattern;
      if (next_is(c, "->")) {  // skips the name of a node in Lark's tree
        c.at += 2;
        skip(c);
        while (c.at < c.text.size() && is_name(c.text[c.at])) ++c.at;
        continue;
      }
      pattern += repeated(c, atom(c));
      check(pattern, c.line);
    }
  }
  std::string repeated(Cursor& c, std::string atom) {
    if (c.at < c.text.size() && (c.text[c.at] == '?' || c.text[c.at] == '*' || c.text[c.at] == '+')) return atom + c.text[c.at++];
    if (!next_is(c, "~")) return atom;
    ++c.at;
    const std::string least = number(c);
    if (!next_is(c, "..")) return fmt::format("{}{{{}}}", atom, least);
    c.at += 2;
    return fmt::format("{}{{{},{}}}", atom, least, number(c));
  }
  std::string number(Cursor& c) const {
    skip(c);
    std::string digits;
    while (c.at < c.text.size() && std::isdigit(static_cast<unsigned char>(c.text[c.at])) != 0) digits += c.text[c.at++];
    if (digits.empty() || digits.size() > 6) fail(c.line, "a count is expected behind ~");
    return digits;
  }
  std::string atom(Cursor& c) {
    const char first = c.text[c.at];
    if (first == '(' || first == '[') {
      ++c.at;
      std::string inner = fmt::format("(?:{})", alternatives(c));
      if (!next_is(c, first == '(' ? ")" : "]")) fail(c.line, fmt::format("\"{}\" has no end", first));
      ++c.at;
      if (first == '[') inner += '?';
      return inner;
    }
    if (first == '"') return text(c);
    if (first == '/') return regex(c);
    std::string name;
    while (c.at < c.text.size() && is_name(c.text[c.at])) name += c.text[c.at++];
    if (name.empty()) fail(c.line, fmt::format("\"{}\" is not expected", first));
    return of_rule(name, c.line);
  }
  // Reads "text" or "a".."z".
  std::string text(Cursor& c) {
    const std::string literal = quoted(c);
    if (next_is(c, "..")) {
      c.at += 2;
      skip(c);
      const std::string last = c.at < c.text.size() && c.text[c.at] == '"' ? quoted(c) : "";
      if (literal.size() != 1 || last.size() != 1) fail(c.line, "a range is \"a\"..\"z\"");
      std::string range = "[";
      put_literal(range, literal[0]);
      range += '-';
      put_literal(range, last[0]);
      return range + "]";
    }
    std::string pattern = "(?:";
    for (const char byte : literal) put_literal(pattern, byte);
    return pattern + ")";
  }
  std::string quoted(Cursor& c) const {
    std::string literal;
    for (++c.at; c.at < c.text.size() && c.text[c.at] != '"'; ++c.at) {
      if (c.text[c.at] != '\\' || c.at + 1 == c.text.size()) {
        literal += c.text[c.at];
        continue;
      }
      const char escaped = c.text[++c.at];
      literal += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
    }
    if (c.at == c.text.size()) fail(c.line, "a text has no end");
    ++c.at;
    if (c.at < c.text.size() && c.text[c.at] == 'i') fail(c.line, "texts in any case (\"...\"i) are not supported");
    return literal;
  }
  std::string regex(Cursor& c) const {
    std::string pattern = "(?:";
    for (++c.at; c.at < c.text.size() && c.text[c.at] != '/'; ++c.at) {
      if (c.text[c.at] == '\\' && c.at + 1 < c.text.size()) {
        if (c.text[c.at + 1] != '/') pattern += '\\';
        ++c.at;
      }
      pattern += c.text[c.at];
    }
    if (c.at == c.text.size()) fail(c.line, "a pattern has no end");
    ++c.at;
    if (c.at < c.text.size() && std::isalpha(static_cast<unsigned char>(c.text[c.at])) != 0) fail(c.line, "patterns with flags are not supported");
    return pattern + ")";
  }
  void check(const std::string& pattern, std::size_t line) const {
    if (pattern.size() > kMostBytes) fail(line, "this grammar is too large");
  }

  const std::string& field_;
  std::map<std::string, Rule, std::less<>> rules_;
  std::map<std::string, std::string, std::less<>> imported_, done_;
  std::vector<std::string> open_;  // rules whose pattern is being made
};

}  // namespace

std::string pattern_of_lark(std::string_view grammar, const std::string& field) { return Lark(grammar, field).pattern(); }

}  // namespace server
