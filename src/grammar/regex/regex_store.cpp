#include "grammar/regex/regex_store.hpp"

#include <algorithm>

namespace tessera::grammar {

namespace {

std::uint64_t hash_set(const ByteSet& set) noexcept {
  std::uint64_t h = 0;
  for (const auto word : set.words) h = mix(h, word);
  return h;
}

}  // namespace

RegexStore::RegexStore() {
  nodes_.push_back({.kind = Kind::empty, .pure_json = true, .finite = true});
  nodes_.push_back({.kind = Kind::epsilon, .nullable = true, .pure_json = true, .finite = true});
  empty_.assign(2, 0);
  star(bytes(ByteSet::all()));  // makes node 2, the single byte, and node 3, which is kAll
}

Regex RegexStore::intern(Node node, std::span<const Regex> list) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(node.kind), (std::uint64_t{node.min} << 32) | node.max);
  const bool has_list = node.kind == Kind::alternative || node.kind == Kind::both;
  if (!has_list) h = mix(h, (std::uint64_t{node.a} << 32) | node.b);
  for (const Regex part : list) h = mix(h, part);
  const auto same = [&](std::uint32_t id) {
    const Node& other = nodes_[id];
    if (other.kind != node.kind || other.min != node.min || other.max != node.max) return false;
    if (!has_list) return other.a == node.a && other.b == node.b;
    const auto theirs = this->list(id);
    return std::equal(theirs.begin(), theirs.end(), list.begin(), list.end());
  };
  if (const auto found = index_.find(h, same); found != kNone) return found;
  if (nodes_.size() >= kMostNodes) out_of_fuel("its regular expressions have too many parts");
  if (node.height > kDeepest) out_of_fuel("a regular expression is nested too deeply");
  if (has_list) {
    node.a = static_cast<std::uint32_t>(lists_.size());
    node.b = static_cast<std::uint32_t>(list.size());
    lists_.insert(lists_.end(), list.begin(), list.end());
    if (lists_.size() > 8 * kMostNodes) out_of_fuel("its regular expressions have too many parts");
  }
  const auto id = static_cast<Regex>(nodes_.size());
  empty_.push_back(0);
  nodes_.push_back(node);  // comes last: if an allocation above fails, no node refers to the entries that were added
  index_.add(h, id);
  return id;
}

std::uint32_t RegexStore::set_id(const ByteSet& set) {
  const std::uint64_t h = hash_set(set);
  if (const auto found = set_index_.find(h, [&](auto id) { return sets_[id] == set; }); found != kNone) return found;
  const auto id = static_cast<std::uint32_t>(sets_.size());
  sets_.push_back(set);
  set_index_.add(h, id);
  return id;
}

std::uint32_t RegexStore::charset_id(const CharSet& set) {
  std::uint64_t h = 0;
  for (const CharRange& range : set) h = mix(h, (std::uint64_t{range.low} << 32) | range.high);
  if (const auto found = charset_index_.find(h, [&](auto id) { return charsets_[id] == set; }); found != kNone) {
    return found;
  }
  const auto id = static_cast<std::uint32_t>(charsets_.size());
  charsets_.push_back(set);
  charset_index_.add(h, id);
  return id;
}

Regex RegexStore::bytes(const ByteSet& set) {
  if (set.empty()) return kEmpty;
  return intern({.kind = Kind::bytes, .finite = true, .a = set_id(set)});
}

Regex RegexStore::literal(std::string_view text) {
  Regex out = kEpsilon;
  for (std::size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(text[i]);
    out = concat(bytes(ByteSet::range(byte, byte)), out);
  }
  return out;
}

Regex RegexStore::character(const CharSet& set, Spelling spelling) {
  if (set.empty()) return kEmpty;
  return intern({.kind = Kind::character,
                 .pure_json = spelling != Spelling::utf8,
                 .finite = true,
                 .a = charset_id(set),
                 .b = static_cast<std::uint32_t>(spelling)});
}

void RegexStore::flatten(Kind kind, Regex r, std::vector<Regex>& out) const {
  if (nodes_[r].kind != kind) {
    out.push_back(r);
    return;
  }
  const auto parts = list(r);  // none of them is of this kind itself, because such nodes are flattened when they are made
  out.insert(out.end(), parts.begin(), parts.end());
}

Regex RegexStore::concat(Regex a, Regex b) {
  if (a == kEmpty || b == kEmpty) return kEmpty;
  if (a == kEpsilon) return b;
  if (b == kEpsilon) return a;
  std::vector<Regex> heads;  // the parts of a; they are appended one by one, so that the result has the form x(y(z...))
  while (nodes_[a].kind == Kind::concat) {
    heads.push_back(nodes_[a].a);
    a = nodes_[a].b;
  }
  heads.push_back(a);
  Regex out = b;
  for (std::size_t i = heads.size(); i-- > 0;) {
    const Node head = nodes_[heads[i]], rest = nodes_[out];
    const bool star = head.kind == Kind::repeat && head.min == 0 && head.max == kUnlimited;
    if (star && (out == heads[i] || (rest.kind == Kind::concat && rest.a == heads[i]))) continue;  // x*x* = x*
    out = intern({.kind = Kind::concat,
                  .nullable = head.nullable && rest.nullable,
                  .search = head.search || rest.search,
                  .pure_json = head.pure_json && rest.pure_json,
                  .finite = head.finite && rest.finite,
                  .a = heads[i],
                  .b = out,
                  .height = std::max(head.height, head.nullable ? rest.height : 0u) + 1});
  }
  return out;
}

Regex RegexStore::concat(std::span<const Regex> parts) {
  Regex out = kEpsilon;
  for (std::size_t i = parts.size(); i-- > 0;) out = concat(parts[i], out);
  return out;
}

bool RegexStore::is_any_star(Regex r) const noexcept {
  const Node& node = nodes_[r];
  if (node.kind != Kind::repeat || node.min != 0 || node.max != kUnlimited) return false;
  const Node& body = nodes_[node.a];
  return body.kind == Kind::character && body.b == static_cast<std::uint32_t>(Spelling::json) &&
         charsets_[body.a] == any_char();
}

// Merges [a] | [b] to [ab], for sets of bytes and of characters.
void RegexStore::merge_sets(std::vector<Regex>& parts) {
  ByteSet set;
  CharSet characters[kSpellings];
  std::erase_if(parts, [&](Regex r) {
    const Node& node = nodes_[r];
    if (node.kind == Kind::bytes) {
      set |= sets_[node.a];
      return true;
    }
    if (node.kind != Kind::character) return false;
    CharSet& into = characters[node.b];
    into.insert(into.end(), charsets_[node.a].begin(), charsets_[node.a].end());
    return true;
  });
  if (!set.empty()) parts.push_back(bytes(set));
  for (const Spelling s : {Spelling::utf8, Spelling::json, Spelling::json_plain}) {
    CharSet& from = characters[static_cast<std::size_t>(s)];
    if (!from.empty()) parts.push_back(character(normalise(std::move(from)), s));
  }
}

// Merges [a]t | [b]t to [ab]t. So characters of several bytes have few derivatives.
void RegexStore::merge_heads(std::vector<Regex>& parts) {
  std::vector<std::pair<Regex, ByteSet>> tails;
  std::erase_if(parts, [&](Regex r) {
    const Node& node = nodes_[r];
    if (node.kind != Kind::concat || nodes_[node.a].kind != Kind::bytes) return false;
    const ByteSet& head = sets_[nodes_[node.a].a];
    const auto at = std::find_if(tails.begin(), tails.end(), [&](const auto& t) { return t.first == node.b; });
    if (at != tails.end()) {
      at->second |= head;
    } else {
      if (tails.size() >= 64) return false;  // looking at more tails would take too long
      tails.emplace_back(node.b, head);
    }
    return true;
  });
  for (const auto& [tail, head] : tails) parts.push_back(concat(bytes(head), tail));
}

Regex RegexStore::alternative(Regex a, Regex b) {
  const Regex parts[] = {a, b};
  return alternative(parts);
}

Regex RegexStore::alternative(std::span<const Regex> given) {
  std::vector<Regex> parts;
  for (const Regex r : given) {
    if (r == kAll) return kAll;
    if (r != kEmpty) flatten(Kind::alternative, r, parts);
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (parts.size() > 1) {
    merge_sets(parts);
    merge_heads(parts);
    const auto any = std::find_if(parts.begin(), parts.end(), [&](Regex r) { return is_any_star(r); });
    if (any != parts.end()) {
      const Regex keep = *any;
      std::erase_if(parts, [&](Regex r) { return r != keep && nodes_[r].pure_json; });
    }
    const bool other = std::any_of(parts.begin(), parts.end(), [&](Regex r) { return r != kEpsilon && nullable(r); });
    if (other) std::erase(parts, kEpsilon);
    std::sort(parts.begin(), parts.end());
  }
  if (parts.empty()) return kEmpty;
  if (parts.size() == 1) return parts[0];
  Node node{.kind = Kind::alternative, .pure_json = true, .finite = true};
  for (const Regex r : parts) {
    node.nullable |= nodes_[r].nullable;
    node.search |= nodes_[r].search;
    node.pure_json &= nodes_[r].pure_json;
    node.finite &= nodes_[r].finite;
    node.height = std::max(node.height, nodes_[r].height + 1);
  }
  return intern(node, parts);
}

Regex RegexStore::both(Regex a, Regex b) {
  std::vector<Regex> parts;
  for (const Regex r : {a, b}) {
    if (r == kEmpty) return kEmpty;
    if (r != kAll) flatten(Kind::both, r, parts);
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  const bool epsilon = std::find(parts.begin(), parts.end(), kEpsilon) != parts.end();
  if (epsilon) {
    return std::all_of(parts.begin(), parts.end(), [&](Regex r) { return nullable(r); }) ? kEpsilon : kEmpty;
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    for (std::size_t j = i + 1; j < parts.size(); ++j) {
      const Node x = nodes_[parts[i]], y = nodes_[parts[j]];
      Regex merged = kNone;
      if (x.kind == Kind::bytes && y.kind == Kind::bytes) {
        ByteSet set = sets_[x.a];
        set &= sets_[y.a];
        merged = bytes(set);
      } else if (x.kind == Kind::character && y.kind == Kind::character && x.b == y.b) {
        merged = character(intersect(charsets_[x.a], charsets_[y.a]), static_cast<Spelling>(x.b));
      } else if (is_any_star(parts[i]) && y.pure_json) {
        merged = parts[j];
      } else if (is_any_star(parts[j]) && x.pure_json) {
        merged = parts[i];
      }
      if (merged == kNone) continue;
      std::vector<Regex> rest = parts;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(j));
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      Regex out = merged;
      for (const Regex r : rest) out = both(out, r);
      return out;
    }
  }
  if (parts.empty()) return kAll;
  if (parts.size() == 1) return parts[0];
  Node node{.kind = Kind::both, .nullable = true, .search = true};
  for (const Regex r : parts) {
    node.nullable &= nodes_[r].nullable;
    node.pure_json |= nodes_[r].pure_json;
    node.finite |= nodes_[r].finite;
    node.height = std::max(node.height, nodes_[r].height + 1);
  }
  return intern(node, parts);
}

Regex RegexStore::negate(Regex a) {
  if (a == kEmpty) return kAll;
  if (a == kAll) return kEmpty;
  if (nodes_[a].kind == Kind::negate) return nodes_[a].a;
  return intern({.kind = Kind::negate,
                 .nullable = !nodes_[a].nullable,
                 .search = true,
                 .a = a,
                 .height = nodes_[a].height + 1});
}

Regex RegexStore::repeat(Regex a, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || a == kEpsilon) return kEpsilon;
  if (a == kEmpty) return min == 0 ? kEpsilon : kEmpty;
  if (min == 1 && max == 1) return a;
  const Node body = nodes_[a];
  if (body.nullable) min = 0;
  if (body.kind == Kind::repeat && body.min == 0 && body.max == kUnlimited) return a;
  return intern({.kind = Kind::repeat,
                 .nullable = min == 0,
                 .search = body.search,
                 .pure_json = body.pure_json,
                 .finite = body.finite && max != kUnlimited,
                 .a = a,
                 .min = min,
                 .max = max,
                 .height = body.height + 1});
}

Regex RegexStore::number(const NumberSpec& spec) {
  const auto at = std::find(numbers_.begin(), numbers_.end(), spec);
  const auto id = static_cast<std::uint32_t>(at - numbers_.begin());
  if (at == numbers_.end()) numbers_.push_back(spec);
  return number_node(id, {});
}

Regex RegexStore::number_node(std::uint32_t spec, const NumberState& s) {
  const std::uint64_t packed = static_cast<std::uint64_t>(s.phase) | std::uint64_t{s.negative} << 4 |
                               std::uint64_t{s.nonzero} << 5 | static_cast<std::uint64_t>(s.low + 1) << 6 |
                               static_cast<std::uint64_t>(s.high + 1) << 8 | std::uint64_t{s.digits} << 10;
  const std::uint64_t scaled = std::uint64_t{s.single} | std::uint64_t{s.negative_exponent} << 1 |
                               static_cast<std::uint64_t>(s.scaled_low + 1) << 2 |
                               static_cast<std::uint64_t>(s.scaled_high + 1) << 4 | std::uint64_t{s.scaled_digits} << 8 |
                               std::uint64_t{s.exponent} << 24;
  std::uint64_t h = mix(mix(mix(0x4E554Du, packed), scaled), mix(s.remainder, spec));
  const auto same = [&](std::uint32_t id) {
    const Node& node = nodes_[id];
    return node.kind == Kind::number && node.a == spec && number_states_[node.b] == s;
  };
  if (const auto found = index_.find(h, same); found != kNone) return found;
  if (nodes_.size() >= kMostNodes) out_of_fuel("its regular expressions have too many parts");
  const auto id = static_cast<Regex>(nodes_.size());
  number_states_.push_back(s);
  empty_.push_back(0);
  nodes_.push_back({.kind = Kind::number,
                    .nullable = may_end(numbers_[spec], s),
                    .search = true,
                    .a = spec,
                    .b = static_cast<std::uint32_t>(number_states_.size() - 1)});
  index_.add(h, id);
  return id;
}

std::size_t RegexStore::memory_bytes() const noexcept {
  return nodes_.capacity() * sizeof(Node) + lists_.capacity() * 4 + index_.memory_bytes() +
         sets_.capacity() * sizeof(ByteSet) + number_states_.capacity() * sizeof(NumberState) +
         expanded_.memory_bytes() + derivatives_.memory_bytes() + firsts_.memory_bytes() + empty_.capacity();
}

}  // namespace tessera::grammar
