#include "grammar/regex/charset.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace tessera::grammar {

namespace {

constexpr std::uint32_t kLast = 0x10FFFF;

// Splits the range of numbers low to high into sequences of digit ranges: a number is in the range if its digits fit one of the
// sequences. (In base 10, 27 to 45 would become 2[7-9], 3[0-9], 4[0-5].) The numbers have `digits` digits of `bits` bits each.
void split_digits(std::uint32_t low, std::uint32_t high, unsigned digits, unsigned bits,
                  std::vector<std::vector<std::pair<unsigned, unsigned>>>& out) {
  for (unsigned d = digits - 1; d > 0; --d) {  // if the lower digits do not cover their whole range, the range is cut in two here
    const std::uint32_t mask = (std::uint32_t{1} << (bits * d)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      split_digits(low, low | mask, digits, bits, out);
      split_digits((low | mask) + 1, high, digits, bits, out);
      return;
    }
    if ((high & mask) != mask) {
      split_digits(low, (high & ~mask) - 1, digits, bits, out);
      split_digits(high & ~mask, high, digits, bits, out);
      return;
    }
  }
  std::vector<std::pair<unsigned, unsigned>> sequence;
  const std::uint32_t digit = (std::uint32_t{1} << bits) - 1;
  for (unsigned d = digits; d-- > 0;) sequence.emplace_back(low >> (bits * d) & digit, high >> (bits * d) & digit);
  out.push_back(std::move(sequence));
}

void spell_utf8(CharRange range, std::vector<ByteSequence>& out) {
  struct Length {
    std::uint32_t last;
    unsigned lead;
  };
  constexpr Length lengths[] = {{0x7F, 0}, {0x7FF, 0xC0}, {0xFFFF, 0xE0}, {kLast, 0xF0}};
  std::uint32_t low = range.low;
  for (unsigned n = 0; n < 4 && low <= range.high; ++n) {
    if (low > lengths[n].last) continue;
    const std::uint32_t high = std::min(range.high, lengths[n].last);
    if (n == 0) {
      out.push_back({ByteSet::range(low, high)});
    } else {
      std::vector<std::vector<std::pair<unsigned, unsigned>>> parts;
      split_digits(low, high, n + 1, 6, parts);
      for (const auto& part : parts) {
        ByteSequence sequence{ByteSet::range(lengths[n].lead | part[0].first, lengths[n].lead | part[0].second)};
        for (unsigned i = 1; i <= n; ++i) sequence.push_back(ByteSet::range(0x80 | part[i].first, 0x80 | part[i].second));
        out.push_back(std::move(sequence));
      }
    }
    low = high + 1;
  }
}

ByteSet hex_digits(unsigned low, unsigned high) {
  ByteSet set;
  for (unsigned d = low; d <= high; ++d) {
    set.add(d < 10 ? '0' + d : 'a' + d - 10);
    if (d >= 10) set.add('A' + d - 10);
  }
  return set;
}

// Appends the spellings \uXXXX of the code units low to high, with `before` in front of each.
void spell_units(std::uint32_t low, std::uint32_t high, const ByteSequence& before, std::vector<ByteSequence>& out) {
  std::vector<std::vector<std::pair<unsigned, unsigned>>> parts;
  split_digits(low, high, 4, 4, parts);
  for (const auto& part : parts) {
    ByteSequence sequence = before;
    sequence.push_back(ByteSet::range('\\', '\\'));
    sequence.push_back(ByteSet::range('u', 'u'));
    for (const auto& [from, to] : part) sequence.push_back(hex_digits(from, to));
    out.push_back(std::move(sequence));
  }
}

ByteSequence unit(std::uint32_t value) {
  std::vector<ByteSequence> out;
  spell_units(value, value, {}, out);
  return out.front();
}

void spell_escapes(const CharSet& set, std::vector<ByteSequence>& out) {
  constexpr std::pair<unsigned, char> shorts[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                                  {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};
  ByteSet letters;
  for (const auto& [code, letter] : shorts) {
    for (const CharRange& range : set) {
      if (range.low <= code && code <= range.high) letters.add(static_cast<unsigned char>(letter));
    }
  }
  if (!letters.empty()) out.push_back({ByteSet::range('\\', '\\'), letters});
  for (const CharRange& range : set) {
    if (range.low <= 0xFFFF) spell_units(range.low, std::min(range.high, 0xFFFFu), {}, out);
    if (range.high <= 0xFFFF) continue;
    const std::uint32_t low = std::max(range.low, 0x10000u) - 0x10000, high = range.high - 0x10000;
    const std::uint32_t first = low >> 10, last = high >> 10;  // high surrogates, minus 0xD800; 1024 low surrogates can follow each
    for (std::uint32_t lead = first; lead <= last;) {
      const std::uint32_t from = lead == first ? low & 0x3FF : 0, to = lead == last ? high & 0x3FF : 0x3FF;
      std::uint32_t until = lead;
      if (from == 0 && to == 0x3FF) until = (high & 0x3FF) == 0x3FF ? last : last - 1;
      std::vector<ByteSequence> leads;
      if (lead == until) {
        leads.push_back(unit(0xD800 + lead));
      } else {
        spell_units(0xD800 + lead, 0xD800 + until, {}, leads);
      }
      for (const ByteSequence& before : leads) spell_units(0xDC00 + from, 0xDC00 + to, before, out);
      lead = until + 1;
    }
  }
}

}  // namespace

CharSet normalise(CharSet set) {
  std::sort(set.begin(), set.end(), [](const CharRange& a, const CharRange& b) { return a.low < b.low; });
  CharSet merged;
  for (const CharRange& range : set) {
    if (range.low > range.high) continue;
    if (!merged.empty() && range.low <= merged.back().high + 1) {
      merged.back().high = std::max(merged.back().high, range.high);
    } else {
      merged.push_back(range);
    }
  }
  CharSet out;  // the set without surrogates
  for (const CharRange& range : merged) {
    if (range.low < 0xD800) out.push_back({range.low, std::min(range.high, 0xD7FFu)});
    if (range.high > 0xDFFF) out.push_back({std::max(range.low, 0xE000u), std::min(range.high, kLast)});
  }
  return out;
}

CharSet complement(const CharSet& set) {
  CharSet out;
  std::uint32_t next = 0;
  for (const CharRange& range : set) {
    if (range.low > next) out.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return normalise(std::move(out));
}

CharSet unite(const CharSet& a, const CharSet& b) {
  CharSet both = a;
  both.insert(both.end(), b.begin(), b.end());
  return normalise(std::move(both));
}

CharSet intersect(const CharSet& a, const CharSet& b) { return complement(unite(complement(a), complement(b))); }

std::vector<ByteSequence> spell(const CharSet& set, Spelling spelling) {
  std::vector<ByteSequence> out;
  if (spelling == Spelling::utf8) {
    for (const CharRange& range : set) spell_utf8(range, out);
    return out;
  }
  const CharSet raw = intersect(set, complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  for (const CharRange& range : raw) spell_utf8(range, out);
  const CharSet plain{{' ', '!'}, {'#', '.'}, {'0', '['}, {']', '~'}};
  spell_escapes(spelling == Spelling::json ? set : intersect(set, complement(plain)), out);
  return out;
}

}  // namespace tessera::grammar
