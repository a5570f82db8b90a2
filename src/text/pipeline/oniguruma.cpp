#include "text/pipeline/oniguruma.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "text/pcre2.hpp"
#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kDeepestSet = 30;

// Character classes of Oniguruma, written as members of a PCRE2 set without the brackets. Oniguruma's tables are those of Unicode 16,
// PCRE2's may be older. So characters whose properties have changed in between are listed one by one.
constexpr std::string_view kSpace = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
// Signs of Latin-1 that \w, \W, \b and \p{Word} take for word characters, but [\w], [\W] and [:word:] do not.
constexpr std::string_view kWordOutsideOfSets = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kLowerSet = R"(\p{Lowercase}\x{10FC}\x{A7F2}-\x{A7F4}\x{AB69})";
constexpr std::string_view kAlphabetic = R"(\p{Alphabetic}\x{363}-\x{36F}\x{C04}\x{F82}\x{F83}\x{1DD3}-\x{1DE6}\x{11080}\x{11081})";
constexpr std::string_view kAlphanumeric = R"(\p{Alphabetic}\x{363}-\x{36F}\x{C04}\x{F82}\x{F83}\x{1DD3}-\x{1DE6}\x{11080}\x{11081}\p{Nd})";

struct Named {
  std::string_view name, members;
  std::string_view only_property{}, only_posix{};  // further members of \p{name} outside of sets, and of [:name:]
};

constexpr Named kNamed[] = {{"alpha", kAlphabetic},
                            {"alphabetic", kAlphabetic},
                            {"alnum", kAlphanumeric},
                            {"upper", R"(\p{Uppercase})"},
                            {"uppercase", R"(\p{Uppercase})"},
                            {"lower", kLowerSet},
                            {"lowercase", kLowerSet},
                            {"digit", R"(\p{Nd})"},
                            {"space", kSpace},
                            {"whitespace", kSpace},
                            {"word", kWord, kWordOutsideOfSets},
                            {"blank", R"(\t\p{Zs})"},
                            {"xdigit", "0-9A-Fa-f"},
                            {"punct", R"(\p{P})", "", R"(\p{S})"},
                            {"cntrl", R"(\p{Cc})"},
                            {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
                            {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
                            {"ascii", R"(\x00-\x7F)"},
                            {"assigned", R"(\P{Cn})"}};

// Long names of general categories, which PCRE2 does not know.
constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
    {"letter", "L"},           {"mark", "M"},              {"number", "N"},           {"punctuation", "P"},
    {"symbol", "S"},           {"separator", "Z"},         {"other", "C"},            {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"}, {"titlecaseletter", "Lt"},  {"modifierletter", "Lm"},  {"otherletter", "Lo"},
    {"decimalnumber", "Nd"},   {"letternumber", "Nl"},     {"othernumber", "No"},     {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},     {"enclosingmark", "Me"},    {"control", "Cc"},         {"format", "Cf"},
    {"spaceseparator", "Zs"},  {"currencysymbol", "Sc"},   {"mathsymbol", "Sm"},      {"othersymbol", "So"},
    {"dashpunctuation", "Pd"}, {"openpunctuation", "Ps"},  {"closepunctuation", "Pe"}, {"otherpunctuation", "Po"}};

// Returns whether PCRE2 knows a script of this name. Since PCRE2 10.40, \p{name} means a script's extensions too, and \p{sc:name} does not.
bool is_script(const std::string& name) {
  if (name.size() < 3 || name.size() > 40 || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != name.npos) return false;
  const std::string pattern = "\\p{sc:" + name + "}";
  int error = 0;
  PCRE2_SIZE offset = 0;
  return Pcre2Code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr)) != nullptr;
}

// One member of a set: characters that can stand in brackets, or, if `negated`, all other characters.
struct Members {
  std::string text;
  bool negated = false;
  [[nodiscard]] std::string as_set() const { return (negated ? "[^" : "[") + text + "]"; }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) TESSERA_TRY_STATUS(atom());
    out_.append(outer_options_, ')');
    return std::move(out_);
  }

 private:
  [[nodiscard]] Error unsupported(std::string_view what) const {
    return make_error(ErrorCode::unsupported, "{} at offset {} of the pattern is not supported", what, at_);
  }
  [[nodiscard]] bool at(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  Status atom() {
    const std::size_t before = atom_;
    if (at("{") || at("+") || at("*") || at("?")) return quantifier();
    atom_ = out_.size();
    if (at("[")) {
      TESSERA_TRY(const std::string set, set_expression(0));
      out_ += set;
      return {};
    }
    if (at("(")) {
      groups_.push_back({atom_, 0});
      return open_group();
    }
    if (at(")")) {
      atom_ = groups_.empty() ? before : groups_.back().begin;
      if (!groups_.empty()) {
        out_.append(groups_.back().options, ')');
        groups_.pop_back();
      }
      out_ += pattern_[at_++];
      return {};
    }
    if (!at("\\")) {
      out_ += pattern_[at_++];
      while (at_ < pattern_.size() && (static_cast<unsigned char>(pattern_[at_]) & 0xC0u) == 0x80u) out_ += pattern_[at_++];
      return {};
    }
    if (at("\\b") || at("\\B")) {
      add_boundary(at("\\B"));
      return {};
    }
    TESSERA_TRY(const std::optional<Members> members, escaped_members(false));
    if (members) {
      out_ += members->as_set();
      return {};
    }
    return plain_escape(out_);
  }

  // Copies "+", "*", "?" or "{n,m}", and the sign after it that makes it lazy or possessive. "{n,m}+" repeats the repetition.
  Status quantifier() {
    if (!at("{")) {
      out_ += pattern_[at_++];
      if (at("+") || at("?")) out_ += pattern_[at_++];
      return {};
    }
    const std::size_t end = pattern_.find('}', at_);
    const std::string_view inside = pattern_.substr(at_ + 1, end == pattern_.npos ? 0 : end - at_ - 1);
    if (inside.empty() || inside.find_first_not_of("0123456789,") != inside.npos) {
      atom_ = out_.size();
      out_ += "\\{";
      ++at_;
      return {};
    }
    at_ = end + 1;
    out_ += inside.starts_with(',') ? "{0" : "{";
    out_.append(inside).append("}");
    if (at("+")) {
      ++at_;
      out_.insert(atom_, "(?:");
      out_ += ")+";
    } else if (at("?")) {
      out_ += pattern_[at_++];
    }
    return {};
  }

  Status open_group() {
    if (at("(*")) return unsupported("\"(*\"");
    out_ += pattern_[at_++];
    if (!at("?")) return {};
    out_ += pattern_[at_++];
    for (const std::string_view kind : {"#", "{", "C", "R", "P", "&", "|", "+", "~", "@", "(", "0", "1"}) {
      if (at(kind)) return unsupported("this kind of group");
    }
    // Options: Ruby's "m" lets a dot match newlines.
    while (at_ < pattern_.size() && (at("i") || at("m") || at("-"))) out_ += at("m") ? 's' : pattern_[at_], ++at_;
    if (at("x") || at("s")) return unsupported("this option of a group");
    if (at(")")) {  // "a(?i)b|c" is "a(?i:b|c)": options open a group that ends with the one around
      groups_.pop_back();
      ++(groups_.empty() ? outer_options_ : groups_.back().options);
      out_ += ':';
      ++at_;
      return {};
    }
    for (const std::string_view copied : {"<=", "<!", "=", "!", ">", ":"}) {
      if (!at(copied)) continue;
      out_ += copied;
      at_ += copied.size();
      return {};
    }
    return at("<") ? Status() : unsupported("this kind of group");  // a name follows
  }

  // Writes \b (negated: \B) as lookarounds, because PCRE2's \b counts other characters as word characters than Oniguruma's does.
  void add_boundary(bool negated) {
    const std::string word = "[" + std::string(kWord) + std::string(kWordOutsideOfSets) + "]";
    out_ += negated ? fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word) : fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word);
    at_ += 2;
  }

  // Translates an escape that stands for a set of characters; nullopt if the escape at the offset is of another kind.
  Result<std::optional<Members>> escaped_members(bool in_set) {
    const char kind = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const auto plain = [&](std::string_view members, bool negated) {
      at_ += 2;
      return std::optional<Members>(Members{std::string(members), negated});
    };
    switch (kind) {
      case 's': return plain(kSpace, false);
      case 'S': return plain(kSpace, true);
      case 'w':
      case 'W': return plain(std::string(kWord).append(in_set ? "" : kWordOutsideOfSets), kind == 'W');
      case 'd': return plain(R"(\p{Nd})", false);
      case 'D': return plain(R"(\p{Nd})", true);
      case 'h': return plain("0-9A-Fa-f", false);
      case 'H': return plain("0-9A-Fa-f", true);
      case 'p':
      case 'P': return property(kind == 'P', in_set);
      default: return std::optional<Members>();
    }
  }

  Result<std::optional<Members>> property(bool negated, bool in_set) {
    const std::size_t end = pattern_.find('}', at_);
    if (pattern_.substr(at_).size() < 4 || pattern_[at_ + 2] != '{' || end == pattern_.npos) return unsupported("\\p without {...}");
    std::string_view written = pattern_.substr(at_ + 3, end - at_ - 3);
    if (written.starts_with('^')) {
      negated = !negated;
      written.remove_prefix(1);
    }
    std::string name;
    for (const char c : written) {
      if (c == '_' || c == ' ' || c == '-') continue;
      name += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    at_ = end + 1;
    if (name == "han") return std::optional<Members>(Members{std::string(kHanMembers), negated});
    for (const Named& named : kNamed) {
      if (name != named.name) continue;
      return std::optional<Members>(Members{std::string(named.members).append(in_set ? "" : named.only_property), negated});
    }
    for (const auto& [longer, category] : kCategories) {
      if (name == longer) written = category;
    }
    if (is_script(name)) return std::optional<Members>(Members{"\\p{sc:" + name + "}", negated});
    return std::optional<Members>(Members{"\\p{" + std::string(written) + "}", negated});
  }

  // Copies an escape that stands for one character, or for a position.
  Status plain_escape(std::string& out) {
    const char kind = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    if (kind == '\0') return unsupported("a backslash without a character");
    if (kind == 'u') {
      const std::string_view digits = pattern_.substr(at_ + 2, 4);
      if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return unsupported("\\u");
      out.append("\\x{").append(digits).append("}");
      at_ += 6;
      return {};
    }
    if (kind == 'v') {
      out += "\\x0B";
      at_ += 2;
      return {};
    }
    if (std::string_view("CGKNQEgkXRcUL").find(kind) != std::string_view::npos) return unsupported(pattern_.substr(at_, 2));
    out.append(pattern_.substr(at_, 2));
    at_ += 2;
    if (static_cast<unsigned char>(kind) >= 0x80) {
      while (at_ < pattern_.size() && (static_cast<unsigned char>(pattern_[at_]) & 0xC0u) == 0x80u) out += pattern_[at_++];
    }
    if (kind == 'x' && at("{")) {
      const std::size_t end = pattern_.find('}', at_);
      if (end == pattern_.npos) return unsupported("\\x{ without }");
      out.append(pattern_.substr(at_, end + 1 - at_));
      at_ = end + 1;
    }
    return {};
  }

  // A part of a set between two "&&": characters, and sets inside of the set as expressions for one character.
  struct Operand {
    std::string members;
    std::vector<std::string> nested;
    [[nodiscard]] std::string expression() const {
      std::string all = members.empty() ? "" : "[" + members + "]";
      for (const std::string& set : nested) all += (all.empty() ? "" : "|") + set;
      return nested.size() + (members.empty() ? 0 : 1) > 1 ? "(?:" + all + ")" : all;
    }
  };

  // Returns an expression that matches one character of the set at the offset.
  Result<std::string> set_expression(std::size_t depth) {
    if (depth == kDeepestSet) return unsupported("a set nested that deep");
    ++at_;
    bool negated = false;
    if (at("^")) {
      negated = true;
      ++at_;
    }
    std::vector<Operand> operands(1);
    for (bool first = true;; first = false) {
      Operand& operand = operands.back();
      if (at_ == pattern_.size()) return unsupported("a set without its end");
      if (at("]") && !first) break;
      if (at("&&")) {
        at_ += 2;
        operands.emplace_back();
      } else if (at("[:")) {
        TESSERA_TRY_STATUS(posix(operand));
      } else if (at("[")) {
        TESSERA_TRY(std::string nested, set_expression(depth + 1));
        operand.nested.push_back(std::move(nested));
      } else if (at("\\")) {
        TESSERA_TRY(const std::optional<Members> members, escaped_members(true));
        if (!members) {
          TESSERA_TRY_STATUS(plain_escape(operand.members));
        } else if (members->negated) {
          operand.nested.push_back(members->as_set());
        } else {
          operand.members += members->text;
        }
      } else {
        if (at("]") || at("^")) operand.members += '\\';
        operand.members += pattern_[at_++];
      }
    }
    ++at_;
    if (operands.size() == 1 && operands[0].nested.empty()) return (negated ? "[^" : "[") + operands[0].members + "]";
    std::string all;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string one = operands[i].expression();
      if (one.empty()) return unsupported("an empty part of a set");
      all += i + 1 < operands.size() ? "(?=" + one + ")" : one;
    }
    return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }

  Status posix(Operand& operand) {
    const std::size_t end = pattern_.find(":]", at_);
    std::string_view name = pattern_.substr(at_ + 2, end == pattern_.npos ? 0 : end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    for (const Named& named : kNamed) {
      if (name != named.name) continue;
      const std::string members = std::string(named.members).append(named.only_posix);
      if (negated) operand.nested.push_back("[^" + members + "]");
      else operand.members += members;
      at_ = end + 2;
      return {};
    }
    return unsupported("this named set");
  }

  std::string_view pattern_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t atom_ = 0;             // offset in out_ of the expression that a quantifier would repeat
  struct Group {
    std::size_t begin, options;  // the group's offset in out_, and the number of option groups that end with the group
  };
  std::vector<Group> groups_;      // the groups that are open
  std::size_t outer_options_ = 0;  // groups of options that end with the pattern
};

}  // namespace

Result<std::string> pcre2_pattern(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace tessera::detail
