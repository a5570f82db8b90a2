// Finds the tokens that may come next. Walks over the tree of all tokens (trie.hpp), and skips a branch as soon as the grammar does not
// allow the bytes on the way to it.
#include <algorithm>

#include "grammar/compiled.hpp"

namespace tessera::grammar {

void MaskCache::mask(std::uint32_t state, const TokenTrie& tokens, MaskWords& out) {
  if (const auto found = mask_ids.find(state); found != kNone) {
    out = masks[found];
    return;
  }
  out.assign(tokens.words(), 0);
  const Trie* rest = &tokens.all;
  for (std::size_t i = 0; i < tokens.slices.size(); ++i) {
    if (!contains(state, tokens, i)) continue;
    out = tokens.slices[i].tokens;
    rest = &tokens.slices[i].rest;
    break;
  }
  walk(state, *rest, out);
  for (const auto& [token, twin] : tokens.twins) {
    if ((out[token / 64] >> (token % 64) & 1) != 0) out[twin / 64] |= std::uint64_t{1} << (twin % 64);
  }
  if (machine.accepts(state)) {
    for (const std::uint32_t end : tokens.ends) out[end / 64] |= std::uint64_t{1} << (end % 64);
  }
  if (masks.size() >= kMostMasks) {
    masks.clear();
    mask_ids = {};
  }
  masks.push_back(out);
  mask_ids.add(state, static_cast<std::uint32_t>(masks.size() - 1));
}

void MaskCache::walk(std::uint32_t state, const Trie& trie, MaskWords& out) {
  path_.resize(trie.depth + 1);
  path_[0] = state;
  const auto size = static_cast<std::uint32_t>(trie.nodes.size());
  for (std::uint32_t i = 0; i < size;) {
    const TrieNode& node = trie.nodes[i];
    const std::uint32_t next = machine.next(path_[node.depth], node.byte);
    if (next == Machine::kDead) {
      i = node.skip;
      continue;
    }
    path_[node.depth + std::size_t{1}] = next;
    if (node.token != kNone) out[node.token / 64] |= std::uint64_t{1} << (node.token % 64);
    ++i;
  }
}

bool MaskCache::contains(std::uint32_t state, const TokenTrie& tokens, std::size_t slice) {
  const std::uint64_t key = (std::uint64_t{state} << 8) | slice;
  if (const auto found = slices.find(key); found != kNone) return found == 1;
  const Slice& s = tokens.slices[slice];
  const bool yes = machine.absorbs(state, s.characters, s.longest) || search_slice(state, s);
  slices.add(key, yes ? 1 : 0);
  return yes;
}

// Returns whether the grammar, in this state, allows every text of the slice's characters, however long. Two automata read the same
// bytes: the grammar's, and the one that reads the slice's characters. All pairs of states that they can reach together are searched. If
// there are more than kMostPairs pairs, returns false, although the answer may be true.
bool MaskCache::search_slice(std::uint32_t state, const Slice& slice) {
  constexpr std::size_t kMostPairs = 48;
  std::vector<std::pair<std::uint32_t, std::uint8_t>> pairs{{state, std::uint8_t{1}}};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [at, part] = pairs[i];
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint8_t next_part = slice.automaton[part][byte];
      if (next_part == 0) continue;
      const std::uint32_t next = machine.next(at, byte);
      if (next == Machine::kDead) return false;
      const std::pair pair{next, next_part};
      if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) continue;
      if (pairs.size() >= kMostPairs) return false;
      pairs.push_back(pair);
    }
  }
  return true;
}

}  // namespace tessera::grammar
