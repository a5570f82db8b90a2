#include "grammar/trie.hpp"

#include <algorithm>

#include "grammar/interner.hpp"
#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

namespace {

using Entry = std::pair<std::string_view, std::uint32_t>;

// Returns the automaton that reads any number of characters of the set.
std::vector<std::array<std::uint8_t, 256>> class_automaton(const CharSet& set) {
  RegexStore store;
  std::vector<Regex> states{RegexStore::kEmpty, store.star(store.character(set, Spelling::utf8))};
  std::vector<std::array<std::uint8_t, 256>> table;
  for (std::size_t i = 0; i < states.size(); ++i) {
    table.emplace_back();
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Regex next = store.derivative(states[i], byte);
      const auto at = std::find(states.begin(), states.end(), next);
      table[i][byte] = static_cast<std::uint8_t>(at - states.begin());
      if (at == states.end()) states.push_back(next);  // there are only a few states: how much of a UTF-8 character was read
    }
  }
  return table;
}

Slice make_slice(const CharSet& set, std::uint32_t longest, const std::vector<Entry>& tokens, std::size_t words) {
  Slice slice{.characters = set, .tokens = MaskWords(words), .rest = {}, .automaton = class_automaton(set), .longest = 0};
  std::vector<Entry> rest;
  for (const Entry& entry : tokens) {
    std::uint8_t state = 1;
    std::uint32_t characters = 0;
    for (const char c : entry.first) {
      characters += state == 1;
      state = slice.automaton[state][static_cast<unsigned char>(c)];
    }
    if (state == 0 || characters > longest) {
      rest.push_back(entry);
      continue;
    }
    slice.longest = std::max(slice.longest, characters);
    slice.tokens[entry.second / 64] |= std::uint64_t{1} << (entry.second % 64);
  }
  slice.rest = Trie::make(rest);
  return slice;
}

}  // namespace

Trie Trie::make(const std::vector<Entry>& tokens) {
  Trie trie;
  std::vector<std::uint32_t> path;  // the nodes from the root to the last token
  std::string_view before;
  const auto close = [&](std::size_t level) {
    for (; path.size() > level; path.pop_back()) trie.nodes[path.back()].skip = static_cast<std::uint32_t>(trie.nodes.size());
  };
  for (const auto& [text, token] : tokens) {
    const auto [a, b] = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
    const auto common = static_cast<std::size_t>(b - text.begin());
    close(common);
    for (std::size_t i = common; i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(trie.nodes.size()));
      trie.nodes.push_back({0, kNone, static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(text[i])});
    }
    trie.nodes.back().token = token;
    trie.depth = std::max(trie.depth, text.size());
    before = text;
  }
  close(0);
  return trie;
}

TokenTrie TokenTrie::make(const std::vector<std::string_view>& tokens, std::vector<std::uint32_t> ends) {
  TokenTrie out;
  out.size = tokens.size();
  out.ends = std::move(ends);
  std::vector<Entry> sorted;
  for (std::uint32_t t = 0; t < tokens.size(); ++t) {
    if (!tokens[t].empty() && tokens[t].size() <= 4096) sorted.emplace_back(tokens[t], t);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Entry> unique;
  for (const Entry& entry : sorted) {
    if (!unique.empty() && unique.back().first == entry.first) {
      out.twins.emplace_back(unique.back().second, entry.second);
    } else {
      unique.push_back(entry);
    }
  }
  out.all = Trie::make(unique);
  // The list below has, for each slice, its characters and the most characters of a token. The widest slices come first. They have the
  // characters that need no escape in a JSON string, for the contents of strings. Then come slices of ASCII, word characters and letters,
  // for strings with patterns.
  const CharSet text = intersect(any_char(), complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}));
  const CharSet ascii{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}};
  const CharSet word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  const CharSet lower{{'a', 'z'}}, letters{{'A', 'Z'}, {'a', 'z'}};
  for (const auto& [set, longest] : {std::pair{text, 4096u}, {text, 16u}, {text, 6u}, {ascii, 4096u}, {word, 4096u}, {letters, 4096u}, {lower, 4096u}}) {
    out.slices.push_back(make_slice(set, longest, unique, out.words()));
  }
  return out;
}

std::size_t TokenTrie::memory_bytes() const noexcept {
  std::size_t bytes = all.nodes.capacity() * sizeof(TrieNode) + twins.capacity() * 8;
  for (const Slice& slice : slices) {
    bytes += slice.rest.nodes.capacity() * sizeof(TrieNode) + slice.tokens.capacity() * 8 + slice.automaton.capacity() * 256;
  }
  return bytes;
}

}  // namespace tessera::grammar
