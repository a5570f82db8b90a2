#include "grammar/ebnf.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "grammar/regex/character_class.hpp"
#include "grammar/regex/pattern.hpp"

namespace tessera::grammar {

namespace {

// The parsed right side of a rule, which is kept until all rules are parsed, because only then it is known which rules are recursive.
struct Term {
  enum class Kind : std::uint8_t { regex, name, sequence, alternative, repeat };
  Kind kind;
  Regex regex = RegexStore::kEpsilon;
  std::uint32_t rule = 0;
  std::uint32_t min = 1, max = 1;
  std::vector<Term> parts;
};

class Parser {
 public:
  Parser(Ir& ir, std::string_view text) : ir_(ir), text_(text) {}

  Form parse() {
    space(true);
    while (at_ < text_.size()) rule();
    for (const Rule& r : rules_) {
      if (!r.defined) error(r.first_use, fmt::format("the rule '{}' is used and not defined", r.name));
    }
    for (const char* name : {"root", "start"}) {
      if (const auto found = names_.find(name); found != names_.end()) return form(found->second);
    }
    error(0, "there is no rule 'root' or 'start' to begin with");
  }

 private:
  static constexpr unsigned kDeepest = 200;

  struct Rule {
    std::string name;
    Term term{};
    bool defined = false;
    std::size_t first_use = 0;
    enum class State : std::uint8_t { untouched, open, done } state = State::untouched;
    std::uint32_t id = kNone;  // id in the Ir, for a rule that is recursive or not regular; kNone: the rule is inserted where it is used
    Form form = kNone;
  };

  [[noreturn]] void error(std::size_t at, const std::string& message) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    fail(ErrorCode::invalid_argument, message, fmt::format("line {}", line));
  }

  [[nodiscard]] bool peek(std::string_view s) const noexcept { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) noexcept {
    if (!peek(s)) return false;
    at_ += s.size();
    return true;
  }
  static bool is_name(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }
  void space(bool newlines) noexcept {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#' || peek("//")) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r' && (c != '\n' || !newlines)) {
        return;
      }
    }
  }

  // Returns whether a rule begins here, with "name ::=" or "name:".
  [[nodiscard]] bool at_rule() const noexcept {
    std::size_t i = at_;
    if (i < text_.size() && (text_[i] == '?' || text_[i] == '!')) ++i;
    const std::size_t name = i;
    while (i < text_.size() && is_name(text_[i])) ++i;
    if (i == name) return false;
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
    return i < text_.size() && text_[i] == ':';
  }

  std::string name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  std::uint32_t rule_of(const std::string& name, std::size_t at) {
    const auto [found, added] = names_.try_emplace(name, static_cast<std::uint32_t>(rules_.size()));
    if (added) rules_.push_back({.name = name, .first_use = at});
    return found->second;
  }

  void rule() {
    const std::size_t start = at_;
    if (text_[at_] == '%') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && is_name(text_[end])) ++end;
      error(at_, fmt::format("the directive '{}' is not supported", text_.substr(at_, end - at_)));
    }
    if (!at_rule()) error(at_, "a rule was expected: name ::= what it is");
    if (!take("?")) take("!");  // in Lark these marks only affect the parse tree, so they are skipped
    const std::uint32_t id = rule_of(name(), start);
    if (rules_[id].defined) error(start, fmt::format("the rule '{}' is defined twice", rules_[id].name));
    space(false);
    if (!take("::=")) take(":");
    Term term = alternatives(0, false);
    rules_[id].term = std::move(term);
    rules_[id].defined = true;
    space(true);
  }

  Term alternatives(unsigned depth, bool inside) {
    if (depth > kDeepest) error(at_, "groups are nested too deeply");
    Term out{.kind = Term::Kind::alternative, .parts = {}};
    do {
      out.parts.push_back(sequence(depth, inside));
      next_alternative(inside);
    } while (take("|"));
    if (out.parts.size() == 1) return Term(std::move(out.parts[0]));
    return out;
  }

  // Skips white space after an alternative, up to the bar before the next alternative. The next alternative may be on a line of its own,
  // with its bar at the beginning of this line or at the end of the line before. If no bar follows, line ends are not skipped (except
  // inside of a group), because a new rule may begin on the next line.
  void next_alternative(bool inside) noexcept {
    space(inside);
    const std::size_t back = at_;
    space(true);
    if (!peek("|")) at_ = back;
  }

  Term sequence(unsigned depth, bool inside) {
    Term out{.kind = Term::Kind::sequence, .parts = {}};
    for (bool first = true;; first = false) {
      space(inside || first);
      if (at_ < text_.size() && text_[at_] == '\n') {  // the sequence continues on the next line, unless a rule, a directive or a bar begins there
        const std::size_t back = at_;
        space(true);
        if (at_ >= text_.size() || at_rule() || peek("%") || peek("|")) {
          at_ = back;
          break;
        }
      }
      if (at_ >= text_.size() || text_[at_] == '|' || text_[at_] == ')' || text_[at_] == '%') break;
      if (at_rule()) break;
      out.parts.push_back(quantified(depth, inside));
    }
    if (out.parts.size() == 1) return Term(std::move(out.parts[0]));
    return out;
  }

  Term quantified(unsigned depth, bool inside) {
    Term term = atom(depth);
    for (unsigned quantifiers = 0;;) {
      const std::size_t back = at_;
      space(inside);  // white space is allowed: "a" * means "a"*
      std::uint32_t min = 0, max = kUnlimited;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (peek("{")) {
        counts(min, max);
      } else {
        at_ = back;
        return term;
      }
      Term repeat{.kind = Term::Kind::repeat, .min = min, .max = max, .parts = {}};
      repeat.parts.push_back(std::move(term));
      term = std::move(repeat);
      if (++quantifiers > 100) error(at_, "too many quantifiers");
    }
  }

  void counts(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t start = at_++;
    const auto number = [&]() -> std::optional<std::uint32_t> {
      space(false);
      std::uint64_t value = 0;
      const std::size_t from = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        value = value * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
        if (value > 1'000'000'000) error(start, "a count over a thousand million");
      }
      const bool any = at_ > from;
      space(false);
      return any ? std::optional(static_cast<std::uint32_t>(value)) : std::nullopt;
    };
    const auto low = number();
    min = low.value_or(0);
    max = min;
    if (take(",")) max = number().value_or(kUnlimited);
    else if (!low) error(start, "a count was expected in the braces");
    if (!take("}")) error(start, "a count without its closing brace");
    if (max < min) error(start, "a count whose maximum is below its minimum");
  }

  Term regex(Regex r) { return {.kind = Term::Kind::regex, .regex = r, .parts = {}}; }

  Term atom(unsigned depth) {
    const std::size_t start = at_;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return quoted(c);
    if (c == '/') return pattern();
    if (take(".")) return regex(ir_.regexes.character(any_char(), Spelling::utf8));
    if (take("[")) {
      try {
        return regex(ir_.regexes.character(parse_class(text_, at_, EscapePlace::in_rules), Spelling::utf8));
      } catch (Failure& failure) {
        error(start, failure.error.message());
      }
    }
    if (take("(")) {
      Term inside = alternatives(depth + 1, true);
      space(true);
      if (!take(")")) error(start, "a group without its closing parenthesis");
      return inside;
    }
    if (is_name(c)) {
      const std::string called = name();
      return {.kind = Term::Kind::name, .rule = rule_of(called, start), .parts = {}};
    }
    error(at_, fmt::format("'{}' was not expected here", c >= ' ' && c < 0x7F ? c : '?'));
  }

  Term quoted(char quote) {
    const std::size_t start = at_++;
    std::vector<Regex> parts;
    bool fold = false;
    CharSet each;
    std::vector<CharSet> characters;
    try {
      for (;;) {
        if (at_ >= text_.size() || text_[at_] == '\n') error(start, "a text without its closing quote");
        if (text_[at_] == quote) break;
        const std::uint32_t code = next_character(text_, at_);
        characters.push_back(code == '\\' ? escaped() : CharSet{{code, code}});
      }
    } catch (Failure& failure) {
      error(start, failure.error.message());
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] == 'i' && (at_ + 1 == text_.size() || !is_name(text_[at_ + 1]))) {
      fold = true;
      ++at_;
    }
    for (CharSet& set : characters) {
      if (fold && set.size() == 1 && set[0].low == set[0].high && set[0].low < 0x80) {
        const std::uint32_t code = set[0].low, lower = code | 32;
        if (lower >= 'a' && lower <= 'z') set = normalise({{lower, lower}, {lower - 32, lower - 32}});
      }
      parts.push_back(ir_.regexes.character(set, Spelling::utf8));
    }
    return regex(ir_.regexes.concat(parts));
  }

  CharSet escaped() {
    const ClassItem item = parse_escape(text_, at_, EscapePlace::in_rules);
    if (item.code == kNone) error(at_, "a class escape inside a text: write a class or a pattern");
    return item.chars;
  }

  Term pattern() {
    const std::size_t start = at_++;
    std::string body;
    bool in_class = false;
    for (;; ++at_) {
      if (at_ >= text_.size() || text_[at_] == '\n') error(start, "a pattern without its closing slash");
      const char c = text_[at_];
      if (c == '/' && !in_class) break;
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      if (c == '\\' && at_ + 1 < text_.size()) body += text_[at_++];
      body += text_[at_];
    }
    ++at_;
    PatternOptions options;
    for (;; ++at_) {
      const char flag = at_ < text_.size() ? text_[at_] : '\0';
      if (flag == 'i') {
        options.letters = PatternOptions::Case::ignore;
      } else if (flag == 's') {
        options.dot = PatternOptions::Dot::all;
      } else if (flag != 'u') {
        break;
      }
    }
    try {
      return regex(parse_pattern(ir_.regexes, body, options));
    } catch (Failure& failure) {
      error(start, failure.error.message());
    }
  }

  // Returns the form of a rule. If the rule is regular (not recursive, and without parts that are not regular), returns its regular
  // expression, which is inserted at each place that uses the rule. So it becomes a part of a larger terminal, and the parser has less to
  // do. For all other rules, returns a reference to a rule of the Ir.
  Form form(std::uint32_t rule) {
    Rule& r = rules_[rule];
    switch (r.state) {
      case Rule::State::done:
        return r.id == kNone ? r.form : ir_.rule(r.id);
      case Rule::State::open:
        if (r.id == kNone) r.id = ir_.add_rule();
        return ir_.rule(r.id);
      case Rule::State::untouched:
        break;
    }
    r.state = Rule::State::open;
    if (++depth_ > 1000) error(r.first_use, "rules are nested too deeply");
    Form made = form(r.term);
    --depth_;
    Rule& now = rules_[rule];
    now.state = Rule::State::done;
    if (now.id == kNone && ir_.exprs[made].kind != Ir::Expr::Kind::regex) now.id = ir_.add_rule();
    if (now.id == kNone) return now.form = made;
    ir_.define(now.id, made);
    return ir_.rule(now.id);
  }

  Form form(const Term& term) {
    std::vector<Form> parts;
    for (const Term& part : term.parts) parts.push_back(form(part));
    switch (term.kind) {
      case Term::Kind::regex: return ir_.regex(term.regex);
      case Term::Kind::name: return form(term.rule);
      case Term::Kind::sequence: return ir_.sequence(parts);
      case Term::Kind::alternative: return ir_.alternative(parts);
      case Term::Kind::repeat: return ir_.repeat(parts[0], term.min, term.max);
    }
    return kNone;
  }

  Ir& ir_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Rule> rules_;
  std::map<std::string, std::uint32_t> names_;
  unsigned depth_ = 0;
};

}  // namespace

Form parse_ebnf(Ir& ir, std::string_view text) { return Parser(ir, text).parse(); }

}  // namespace tessera::grammar
