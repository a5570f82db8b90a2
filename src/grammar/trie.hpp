// The tokens of a vocabulary as a tree over their bytes, in the order of a walk: a node's children follow it, and `skip`
// is where the walk goes on if it does not enter. Slices are the tokens that consist of characters of a frequent class;
// where a grammar allows every text of the class, they are allowed at once and the walk is over the rest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/charset.hpp"

namespace tessera::grammar {

using MaskWords = std::vector<std::uint64_t>;  // [tokens / 64], bit t % 64 of word t / 64

struct TrieNode {
  std::uint32_t skip;
  std::uint32_t token;  // kNone: none ends here
  std::uint16_t depth;  // of the node's byte, from 0
  std::uint8_t byte;
};

struct Trie {
  std::vector<TrieNode> nodes;
  std::size_t depth = 0;  // of the longest token

  // tokens: sorted by their bytes, none empty, no bytes twice.
  [[nodiscard]] static Trie make(const std::vector<std::pair<std::string_view, std::uint32_t>>& tokens);
};

struct Slice {
  CharSet characters;
  MaskWords tokens;
  Trie rest;  // the other tokens
  // The class as an automaton over bytes: [states][256], 0 is dead, 1 where a character begins.
  std::vector<std::array<std::uint8_t, 256>> automaton;
  std::uint32_t longest = 0;  // characters of its longest token
};

struct [[gnu::visibility("hidden")]] TokenTrie {
  std::size_t size = 0;  // tokens of the vocabulary
  Trie all;
  std::vector<Slice> slices;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> twins;  // a token of the tree, another with the same bytes
  std::vector<std::uint32_t> ends;  // end-of-generation tokens

  [[nodiscard]] static TokenTrie make(const std::vector<std::string_view>& tokens, std::vector<std::uint32_t> ends);
  [[nodiscard]] std::size_t words() const noexcept { return (size + 63) / 64; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

}  // namespace tessera::grammar
