// RegexStore's functions that compute their results only when they are asked for: derivatives, possible first bytes, emptiness. Also the
// conversion of texts to expressions, and import().
#include <algorithm>

#include "grammar/regex/regex_store.hpp"
#include "core/utf8.hpp"

namespace tessera::grammar {

Regex RegexStore::expand_character(Regex r) {
  if (const auto found = expanded_.find(r); found != kNone) return found;
  const Node node = nodes_[r];
  std::vector<Regex> parts;
  for (const ByteSequence& sequence : spell(charsets_[node.a], static_cast<Spelling>(node.b))) {
    Regex out = kEpsilon;
    for (std::size_t i = sequence.size(); i-- > 0;) out = concat(bytes(sequence[i]), out);
    parts.push_back(out);
  }
  const Regex out = alternative(parts);
  expanded_.add(r, out);
  return out;
}

Regex RegexStore::derivative(Regex r, unsigned byte) {
  const Node& node = nodes_[r];
  switch (node.kind) {
    case Kind::empty:
    case Kind::epsilon:
      return kEmpty;
    case Kind::bytes:
      return sets_[node.a].has(byte) ? kEpsilon : kEmpty;
    case Kind::concat:
      if (nodes_[node.a].kind == Kind::bytes) return sets_[nodes_[node.a].a].has(byte) ? node.b : kEmpty;
      break;
    default:
      if (r == kAll) return kAll;
      break;
  }
  const std::uint64_t key = (std::uint64_t{r} << 8) | byte;
  if (const auto found = derivatives_.find(key); found != kNone) return found;
  ++work_;
  const Regex out = derive(r, byte);
  derivatives_.add(key, out);
  return out;
}

Regex RegexStore::derive(Regex r, unsigned byte) {
  const Node node = nodes_[r];  // a copy, because nodes_ may grow meanwhile
  switch (node.kind) {
    case Kind::character:
      return derivative(expand_character(r), byte);
    case Kind::concat: {
      const Regex out = concat(derivative(node.a, byte), node.b);
      return nodes_[node.a].nullable ? alternative(out, derivative(node.b, byte)) : out;
    }
    case Kind::alternative: {
      std::vector<Regex> parts;
      for (std::uint32_t i = 0; i < node.b; ++i) {
        const Regex part = derivative(lists_[node.a + i], byte);
        if (part != kEmpty) parts.push_back(part);
      }
      return parts.size() == 1 ? parts[0] : alternative(parts);
    }
    case Kind::both: {
      std::vector<Regex> parts;
      for (std::uint32_t i = 0; i < node.b; ++i) {
        parts.push_back(derivative(lists_[node.a + i], byte));
        if (parts.back() == kEmpty) return kEmpty;
      }
      // Intersects the parts two by two, in several rounds. An intersection compares all its parts with each other, so it is cheaper to
      // intersect small groups first.
      for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
        for (std::size_t i = 0; i < parts.size(); i += 2) {
          parts[i / 2] = i + 1 < parts.size() ? both(parts[i], parts[i + 1]) : parts[i];
        }
      }
      return parts[0];
    }
    case Kind::negate:
      return negate(derivative(node.a, byte));
    case Kind::repeat: {
      const Regex head = derivative(node.a, byte);
      if (head == kEmpty) return kEmpty;
      const std::uint32_t max = node.max == kUnlimited ? kUnlimited : node.max - 1;
      return concat(head, repeat(node.a, node.min > 0 ? node.min - 1 : 0, max));
    }
    case Kind::number: {
      const auto next = advance(numbers_[node.a], number_states_[node.b], byte);
      return next ? number_node(node.a, *next) : kEmpty;
    }
    default:
      return kEmpty;
  }
}

const ByteSet& RegexStore::first(Regex r) {
  if (const auto found = firsts_.find(r); found != kNone) return sets_[found];
  const Node node = nodes_[r];
  ByteSet set;
  switch (node.kind) {
    case Kind::empty:
    case Kind::epsilon:
      break;
    case Kind::bytes:
      set = sets_[node.a];
      break;
    case Kind::character:
      set = first(expand_character(r));
      break;
    case Kind::concat:
      set = first(node.a);
      if (nodes_[node.a].nullable) set |= first(node.b);
      break;
    case Kind::alternative:
      for (std::uint32_t i = 0; i < node.b; ++i) set |= first(lists_[node.a + i]);
      break;
    case Kind::both:
      set = ByteSet::all();
      for (std::uint32_t i = 0; i < node.b; ++i) set &= first(lists_[node.a + i]);
      break;
    case Kind::negate:
      set = ByteSet::all();
      break;
    case Kind::repeat:
      set = first(node.a);
      break;
    case Kind::number:
      for (const char c : std::string_view("0123456789-+.eE")) set.add(static_cast<unsigned char>(c));
      break;
  }
  const std::uint32_t id = set_id(set);
  firsts_.add(r, id);
  return sets_[id];
}

bool RegexStore::is_empty(Regex r) {
  for (;; r = nodes_[r].b) {  // each round handles one part of a concatenation
    if (!nodes_[r].search) return r == kEmpty;
    if (nodes_[r].nullable) return false;
    if (empty_[r] != 0) return empty_[r] == 1;
    const Node node = nodes_[r];
    switch (node.kind) {
      case Kind::concat:
        if (is_empty(node.a)) {
          empty_[r] = 1;
          return true;
        }
        continue;
      case Kind::repeat:
        return node.min > 0 && is_empty(node.a);
      case Kind::alternative:
        for (std::uint32_t i = 0; i < node.b; ++i) {
          if (!is_empty(lists_[node.a + i])) return false;
        }
        return true;
      case Kind::number: {
        // While digits of the whole part come, further digits can lead to any remainder. So a step does not make the number impossible.
        const NumberSpec& spec = numbers_[node.a];
        if (!spec.low && !spec.high && number_states_[node.b].phase == NumberState::Phase::whole) return false;
        return search_empty(r);
      }
      default:
        return search_empty(r);
    }
  }
}

// Appends sets of bytes to `out`, so that two bytes have the same derivative of r if each set contains both bytes or neither of them. If
// `out` then has more than 64 sets, some sets may be missing, and the caller must treat every byte as a class of its own.
void RegexStore::front_sets(Regex r, std::vector<ByteSet>& out) {
  const Node node = nodes_[r];
  switch (node.kind) {
    case Kind::empty:
    case Kind::epsilon:
      return;
    case Kind::bytes:
      if (std::find(out.begin(), out.end(), sets_[node.a]) == out.end()) out.push_back(sets_[node.a]);
      return;
    case Kind::character:
      return front_sets(expand_character(r), out);
    case Kind::concat:
      front_sets(node.a, out);
      if (nodes_[node.a].nullable) front_sets(node.b, out);
      return;
    case Kind::alternative:
    case Kind::both:
      for (std::uint32_t i = 0; i < node.b && out.size() <= 64; ++i) front_sets(lists_[node.a + i], out);
      return;
    case Kind::negate:
    case Kind::repeat:
      return front_sets(node.a, out);
    case Kind::number:
      for (const char c : std::string_view("0123456789-+.eE")) {
        const auto byte = static_cast<unsigned char>(c);
        const ByteSet set = ByteSet::range(byte, byte);
        if (std::find(out.begin(), out.end(), set) == out.end()) out.push_back(set);
      }
      return;
  }
}

unsigned RegexStore::classes_of(std::span<const Regex> list, std::array<std::uint8_t, 256>& classes) {
  std::vector<ByteSet> sets;
  ByteSet begins;
  for (const Regex r : list) {
    if (sets.size() <= 64) front_sets(r, sets);
    begins |= first(r);
  }
  classes.fill(0);
  std::array<std::uint64_t, 256> signatures{};
  for (std::size_t i = 0; i < std::min<std::size_t>(sets.size(), 64); ++i) {
    for_each_byte(sets[i], [&](unsigned byte) { signatures[byte] |= std::uint64_t{1} << i; });
  }
  if (sets.size() > 64) {  // too many sets: every byte becomes a class of its own
    for (unsigned byte = 0; byte < 256; ++byte) signatures[byte] = byte;
  }
  std::vector<std::uint64_t> known;
  for_each_byte(begins, [&](unsigned byte) {
    const auto at = std::find(known.begin(), known.end(), signatures[byte]) - known.begin();
    if (static_cast<std::size_t>(at) == known.size()) known.push_back(signatures[byte]);
    classes[byte] = static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(at + 1, 255));
  });
  if (known.size() > 254) return 0;  // too many classes: their numbers must fit into bytes
  return static_cast<unsigned>(known.size() + 1);
}

namespace {

constexpr std::uint64_t kLongestSearch = 12'000;  // limit for one search, in derivatives: 40 ms if these are expensive

}  // namespace

// Returns whether r has no text: searches its derivatives, breadth first, for one that may end.
bool RegexStore::search_empty(Regex r) {
  struct Visit {
    Regex node;
    std::uint32_t parent;
  };
  std::vector<Visit> visits{{r, kNone}};
  SmallMap seen;
  seen.add(r, 0);
  const std::uint64_t begin = work_;
  std::array<std::uint8_t, 256> classes{};
  for (std::uint32_t at = 0; at < visits.size(); ++at) {
    const Regex node = visits[at].node;
    const unsigned n = this->classes(node, classes);
    std::array<bool, 256> done{};
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (classes[byte] == 0 || (n != 0 && done[classes[byte]])) continue;
      done[classes[byte]] = true;
      if (work_ - begin > kLongestSearch) out_of_fuel("whether an intersection is empty takes too long to find out");
      const Regex next = derivative(node, byte);
      if (next == kEmpty || empty_[next] == 1) continue;
      if (nodes_[next].nullable || empty_[next] == 2 || !nodes_[next].search) {
        for (std::uint32_t v = at; v != kNone; v = visits[v].parent) empty_[visits[v].node] = 2;
        return false;
      }
      if (seen.find(next) != kNone) continue;
      seen.add(next, 0);
      visits.push_back({next, at});
    }
  }
  for (const Visit& visit : visits) empty_[visit.node] = 1;
  return true;
}

bool RegexStore::matches(Regex r, std::string_view text) {
  for (const char c : text) {
    if (r == kEmpty) return false;
    r = derivative(r, static_cast<unsigned char>(c));
  }
  return nullable(r);
}

bool RegexStore::absorbs(Regex r, const CharSet& set, std::uint32_t n) {
  const Node node = nodes_[r];  // a copy, because nodes_ may grow meanwhile
  switch (node.kind) {
    case Kind::concat:  // the rest must also be able to end
      return absorbs(node.a, set, n) && !is_empty(node.b);
    case Kind::alternative:
      for (std::uint32_t i = 0; i < node.b; ++i) {
        if (absorbs(lists_[node.a + i], set, n)) return true;
      }
      return false;
    case Kind::repeat:
      return node.max >= n && nodes_[node.a].kind == Kind::character &&
             intersect(charsets_[nodes_[node.a].a], set) == set;
    case Kind::both: {  // one part must absorb without limit, and the others exclude only finitely many texts
      bool endless = false;
      for (std::uint32_t i = 0; i < node.b; ++i) {
        const Regex part = lists_[node.a + i];
        const Node inside = nodes_[part];
        if (inside.kind == Kind::repeat && inside.max == kUnlimited && absorbs(part, set, n)) {
          if (endless) return false;
          endless = true;
        } else if (inside.kind != Kind::negate || !nodes_[inside.a].finite) {
          return false;
        }
      }
      return endless;
    }
    default:
      return r == kAll;
  }
}

namespace {

// Returns the code point of the character at offset `at`, and moves `at` behind the character. Precondition: a character of UTF-8 begins
// at `at`.
std::uint32_t decode(std::string_view text, std::size_t& at) {
  const auto size = detail::utf8_step(text.substr(at)).size;
  const auto lead = static_cast<unsigned char>(text[at]);
  std::uint32_t code = size == 1 ? lead : lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  at += size;
  return code;
}

}  // namespace

Regex RegexStore::literal(std::string_view utf8, Spelling spelling) {
  if (spelling == Spelling::utf8) return literal(utf8);
  std::vector<Regex> parts;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::uint32_t code = decode(utf8, at);
    parts.push_back(character({{code, code}}, spelling));
  }
  return concat(parts);
}

Regex RegexStore::literals(std::vector<std::string> texts, Spelling spelling) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return trie(texts, 0, spelling);
}

Regex RegexStore::trie(std::span<const std::string> texts, std::size_t at, Spelling spelling) {
  if (texts.empty()) return kEmpty;
  const std::string_view first = texts.front(), last = texts.back();
  if (texts.size() == 1) return literal(first.substr(at), spelling);
  std::size_t common = at;  // the texts are sorted, so a beginning that the first and the last share is common to all
  while (common < first.size()) {
    std::size_t next = common;
    decode(first, next);
    if (last.substr(common, next - common) != first.substr(common, next - common)) break;
    common = next;
  }
  std::vector<Regex> parts;
  std::size_t i = 0;
  if (texts[0].size() == common) {
    parts.push_back(kEpsilon);
    ++i;
  }
  while (i < texts.size()) {
    std::size_t next = common;
    decode(texts[i], next);
    const std::string_view head = std::string_view(texts[i]).substr(common, next - common);
    std::size_t end = i;
    while (end < texts.size() && std::string_view(texts[end]).substr(common, head.size()) == head) ++end;
    parts.push_back(concat(literal(head, spelling), trie(texts.subspan(i, end - i), next, spelling)));
    i = end;
  }
  return concat(literal(first.substr(at, common - at), spelling), alternative(parts));
}

Regex RegexStore::import(const RegexStore& from, Regex r, std::vector<Regex>& done) {
  if (done.size() < from.nodes_.size()) done.resize(from.nodes_.size(), kNone);
  std::vector<Regex> heads;
  while (from.nodes_[r].kind == Kind::concat && done[r] == kNone) {
    heads.push_back(r);
    r = from.nodes_[r].b;
  }
  if (done[r] == kNone) {
    const Node& node = from.nodes_[r];
    Regex out = r;
    std::vector<Regex> parts;
    switch (node.kind) {
      case Kind::empty:
      case Kind::epsilon:
      case Kind::concat:
        break;
      case Kind::bytes:
        out = bytes(from.sets_[node.a]);
        break;
      case Kind::character:
        out = character(from.charsets_[node.a], static_cast<Spelling>(node.b));
        break;
      case Kind::alternative:
        for (const Regex part : from.list(r)) parts.push_back(import(from, part, done));
        out = alternative(parts);
        break;
      case Kind::both:
        out = kAll;
        for (const Regex part : from.list(r)) out = both(out, import(from, part, done));
        break;
      case Kind::negate:
        out = negate(import(from, node.a, done));
        break;
      case Kind::repeat:
        out = repeat(import(from, node.a, done), node.min, node.max);
        break;
      case Kind::number:
        out = number(from.numbers_[node.a]);  // the numbers of a grammar are always in their start state
        break;
    }
    done[r] = out;
  }
  for (std::size_t i = heads.size(); i-- > 0;) {
    const Regex head = import(from, from.nodes_[heads[i]].a, done);
    done[heads[i]] = concat(head, done[from.nodes_[heads[i]].b]);
  }
  return heads.empty() ? done[r] : done[heads[0]];
}

}  // namespace tessera::grammar
