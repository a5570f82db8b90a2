#include "grammar/regex/pattern.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "grammar/regex/character_class.hpp"

namespace tessera::grammar {

namespace {

constexpr unsigned kBegin = 1, kEnd = 2, kInner = 4, kVariants = 8;

// A part of a pattern. It consists of several expressions (variants), which differ in where in the text they may match: variant[0]
// anywhere; variant[kBegin] only at the beginning of the text; variant[kInner] only if some text comes before; variant[kEnd] only at the
// end of the text. An index may be a sum of these flags, but never has both kBegin and kInner, which exclude each other. Variants with
// kInner come only from lookaheads that contain `^`. A group has no variant with kInner, because lookaheads in groups are refused.
struct PatternPart {
  std::array<Regex, kVariants> variant{};  // RegexStore::kEmpty is 0

  [[nodiscard]] bool anchored() const noexcept {
    return std::any_of(variant.begin() + 1, variant.end(), [](Regex r) { return r != RegexStore::kEmpty; });
  }
};
static_assert(RegexStore::kEmpty == 0);

PatternPart only(unsigned flags, Regex r) {
  PatternPart out;
  out.variant[flags] = r;
  return out;
}
PatternPart plain(Regex r) { return only(0, r); }

constexpr bool possible(unsigned flags) noexcept { return (flags & (kBegin | kInner)) != (kBegin | kInner); }

// Collects the expressions of each variant. In the end they become alternatives.
struct Parts {
  std::array<std::vector<Regex>, kVariants> of;

  void add(unsigned flags, Regex r) {
    if (r != RegexStore::kEmpty && possible(flags)) of[flags].push_back(r);
  }
  [[nodiscard]] PatternPart joined(RegexStore& store) const {
    PatternPart out;
    for (unsigned f = 0; f < kVariants; ++f) out.variant[f] = store.alternative(of[f]);
    return out;
  }
};

class PatternParser {
 public:
  PatternParser(RegexStore& store, std::string_view text, const PatternOptions& options)
      : store_(store), text_(text), options_(options), any_(store.star(store.character(any_char(), options.spelling))) {}

  Regex parse() {
    const PatternPart piece = alternatives(0);
    if (at_ < text_.size()) pattern_error(at_, "a closing parenthesis without its opening one");
    const bool search = options_.match == PatternOptions::Match::search;
    std::vector<Regex> parts;
    for (unsigned flags = 0; flags < kVariants; ++flags) {
      Regex r = piece.variant[flags];
      if (!search && (flags & kInner) != 0) continue;  // if the whole text must match, no text can come before it
      if (search && (flags & kEnd) == 0) r = store_.concat(r, any_);
      if (search && (flags & kInner) != 0) r = store_.concat(store_.character(any_char(), options_.spelling), r);
      if (search && (flags & kBegin) == 0) r = store_.concat(any_, r);
      parts.push_back(r);
    }
    return store_.alternative(parts);
  }

 private:
  static constexpr unsigned kDeepest = 200;

  [[nodiscard]] bool peek(std::string_view s) const noexcept { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) noexcept {
    if (!peek(s)) return false;
    at_ += s.size();
    return true;
  }

  PatternPart alternatives(unsigned depth) {
    if (depth > kDeepest) pattern_error(at_, "groups are nested too deeply");
    Parts parts;
    do {
      const PatternPart piece = sequence(depth);
      for (unsigned f = 0; f < kVariants; ++f) parts.add(f, piece.variant[f]);
    } while (take("|"));
    return parts.joined(store_);
  }

  PatternPart sequence(unsigned depth) {
    struct Element {
      PatternPart piece;
      int look = 0;  // 1: a lookahead, -1: a negative lookahead, 0: neither
    };
    std::vector<Element> parts;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      const std::size_t start = at_;
      if (peek("(?=") || peek("(?!")) {
        const int look = text_[at_ + 2] == '=' ? 1 : -1;
        at_ += 3;
        if (depth > 0) pattern_error(start, "lookahead inside a group is not supported", ErrorCode::unsupported);
        const PatternPart inside = alternatives(depth + 1);
        if (!take(")")) pattern_error(start, "a group without its closing parenthesis");
        parts.push_back({inside, look});
        continue;
      }
      parts.push_back({quantified(depth)});
    }
    PatternPart out = plain(RegexStore::kEpsilon);
    for (std::size_t i = parts.size(); i-- > 0;) {
      out = parts[i].look == 0 ? join(parts[i].piece, out) : looked(parts[i].piece, parts[i].look, out);
    }
    return out;
  }

  PatternPart join(const PatternPart& a, const PatternPart& b) {
    Parts parts;
    const auto empty_text_of = [&](Regex r) { return store_.nullable(r) ? RegexStore::kEpsilon : RegexStore::kEmpty; };
    for (unsigned i = 0; i < kVariants; ++i) {
      for (unsigned j = 0; j < kVariants; ++j) {
        Regex x = a.variant[i], y = b.variant[j];
        if (x == RegexStore::kEmpty || y == RegexStore::kEmpty) continue;
        if ((i & kEnd) != 0) y = empty_text_of(y);
        if ((j & kInner) != 0) {  // y needs some text before it: either x matches some text, or some text comes before x
          const Regex some = store_.nullable(x) ? store_.both(x, store_.negate(RegexStore::kEpsilon)) : x;
          parts.add(i | (j & ~kInner), store_.concat(some, y));
        }
        if ((j & (kBegin | kInner)) != 0) x = empty_text_of(x);
        parts.add(i | j, store_.concat(x, y));
      }
    }
    return parts.joined(store_);
  }

  // Applies a lookahead to the rest of the pattern. If `look` is positive: returns the texts of `rest` that begin with a text of
  // `inside`. If `look` is negative: returns the texts of `rest` that do not. If `inside` contains `^`, the result has one variant for
  // the beginning of the text, where `^` holds, and one for all other places.
  PatternPart looked(const PatternPart& inside, int look, const PatternPart& rest) {
    const bool search = options_.match == PatternOptions::Match::search;
    const auto ahead_of = [&](unsigned place) {
      return store_.alternative(store_.concat(inside.variant[place], any_), inside.variant[place | kEnd]);
    };
    Regex inner = ahead_of(0), begin = store_.alternative(inner, ahead_of(kBegin));
    const bool same = inner == begin;
    if (look < 0) {
      inner = store_.negate(inner);
      begin = store_.negate(begin);
    }
    Parts parts;
    for (const unsigned place : {0u, kBegin, kInner}) {
      const Regex open = search ? store_.concat(rest.variant[place], any_) : rest.variant[place];
      const Regex text = store_.alternative(open, rest.variant[place | kEnd]);
      if (same) {
        parts.add(place | kEnd, store_.both(text, inner));
      } else {
        parts.add(place | kEnd | kInner, store_.both(text, inner));
        parts.add(place | kEnd | kBegin, store_.both(text, begin));
      }
    }
    return parts.joined(store_);
  }

  PatternPart quantified(unsigned depth) {
    const std::size_t start = at_;
    PatternPart piece = atom(depth);
    for (bool first = true;; first = false) {
      const std::size_t quantifier_at = at_;
      std::uint32_t min = 0, max = kUnlimited;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (!counts(min, max)) {
        return piece;
      }
      if (!first) pattern_error(quantifier_at, "two quantifiers in a row");
      if (at_ < text_.size() && text_[at_] == '+') pattern_error(at_, "possessive quantifiers are not supported", ErrorCode::unsupported);
      take("?");  // a lazy quantifier matches the same texts
      piece = repeat(piece, min, max, start);
    }
  }

  PatternPart repeat(const PatternPart& piece, std::uint32_t min, std::uint32_t max, std::size_t start) {
    if (!piece.anchored()) return plain(store_.repeat(piece.variant[0], min, max));
    if (min > 1 || (max != 1 && max != kUnlimited)) {
      pattern_error(start, "a counted repetition of an anchor is not supported", ErrorCode::unsupported);
    }
    PatternPart out = piece;
    if (max == kUnlimited) {  // only the first repetition can be at the beginning of the text, and only the last at its end
      const Regex inner = store_.star(piece.variant[0]);
      PatternPart any = plain(inner);
      any.variant[kBegin] = store_.concat(piece.variant[kBegin], inner);
      any.variant[kEnd] = store_.concat(inner, piece.variant[kEnd]);
      any.variant[kBegin | kEnd] = store_.alternative(
          piece.variant[kBegin | kEnd], store_.concat(any.variant[kBegin], piece.variant[kEnd]));
      out = min == 0 ? any : join(piece, any);
    }
    if (min == 0) out.variant[0] = store_.alternative(out.variant[0], RegexStore::kEpsilon);
    return out;
  }

  // Parses {n}, {n,} or {n,m}. Returns false if the brace begins none of these; then it is an ordinary character.
  bool counts(std::uint32_t& min, std::uint32_t& max) {
    if (!peek("{")) return false;
    std::size_t i = at_ + 1;
    const auto number = [&]() -> std::optional<std::uint32_t> {
      std::uint64_t value = 0;
      const std::size_t from = i;
      for (; i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; ++i) {
        value = value * 10 + static_cast<std::uint64_t>(text_[i] - '0');
        if (value > 1'000'000'000) pattern_error(at_, "a count over a thousand million");
      }
      if (i == from) return std::nullopt;
      return static_cast<std::uint32_t>(value);
    };
    const auto low = number();
    if (!low) return false;
    std::uint32_t high = *low;
    if (i < text_.size() && text_[i] == ',') {
      ++i;
      high = number().value_or(kUnlimited);
    }
    if (i >= text_.size() || text_[i] != '}') return false;
    if (high < *low) pattern_error(at_, "a count whose maximum is below its minimum");
    min = *low;
    max = high;
    at_ = i + 1;
    return true;
  }

  PatternPart atom(unsigned depth) {
    const std::size_t start = at_;
    const std::uint32_t c = next_character(text_, at_);
    switch (c) {
      case '^':
        return only(kBegin, RegexStore::kEpsilon);
      case '$':
        return only(kEnd, RegexStore::kEpsilon);
      case '.':
        if (options_.dot == PatternOptions::Dot::all) return characters(any_char());
        return characters(complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
      case '[':
        return characters(parse_class(text_, at_));
      case '\\':
        return characters(parse_escape(text_, at_, EscapePlace::outside).chars);
      case '*':
      case '+':
      case '?':
        pattern_error(start, "a quantifier with nothing before it");
      case '(': {
        if (!take("?:") && peek("?")) {
          if (!peek("?<") || peek("?<=") || peek("?<!")) {
            pattern_error(start, "this kind of group is not supported", ErrorCode::unsupported);
          }
          const auto end = text_.find('>', at_);
          if (end == std::string_view::npos) pattern_error(start, "a group's name does not end");
          at_ = end + 1;
        }
        const PatternPart inside = alternatives(depth + 1);
        if (!take(")")) pattern_error(start, "a group without its closing parenthesis");
        return inside;
      }
      default:
        return characters({{c, c}});
    }
  }

  PatternPart characters(CharSet set) {
    if (options_.letters == PatternOptions::Case::ignore) {
      const CharSet upper = intersect(set, {{'A', 'Z'}}), lower = intersect(set, {{'a', 'z'}});
      for (const CharRange& r : upper) set.push_back({r.low + 32, r.high + 32});
      for (const CharRange& r : lower) set.push_back({r.low - 32, r.high - 32});
      set = normalise(std::move(set));
    }
    return plain(store_.character(set, options_.spelling));
  }

  RegexStore& store_;
  std::string_view text_;
  PatternOptions options_;
  Regex any_;
  std::size_t at_ = 0;
};

}  // namespace

Regex parse_pattern(RegexStore& store, std::string_view pattern, const PatternOptions& options) {
  if (pattern.size() > 100'000) pattern_error(0, "a pattern of more than 100,000 bytes");
  return PatternParser(store, pattern, options).parse();
}

}  // namespace tessera::grammar
