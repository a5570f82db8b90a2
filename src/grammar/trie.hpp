// The tokens of a vocabulary as a tree over their bytes, for finding all tokens that a grammar allows. The nodes are stored in the order
// of a walk: a node is followed by its children. `skip` is the index at which the walk goes on if it does not enter a node's children.
//
// A slice is the set of all tokens that consist only of characters of one frequent class, such as letters, up to a certain length. If a
// grammar allows every text of that class, all tokens of the slice are allowed at once, and only the remaining tokens need a walk.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/charset.hpp"

namespace tessera::grammar {

// A set of tokens: one bit for each token of the vocabulary  [(tokens + 63) / 64]. Token t is bit t % 64 of word t / 64.
using MaskWords = std::vector<std::uint64_t>;

struct TrieNode {
  std::uint32_t skip;
  std::uint32_t token;  // the token that ends at this node; kNone: none
  std::uint16_t depth;  // index of this node's byte within its tokens
  std::uint8_t byte;
};

struct Trie {
  std::vector<TrieNode> nodes;
  std::size_t depth = 0;  // length of the longest token, in bytes

  // Makes the tree of the tokens. Preconditions: `tokens` are sorted by their bytes, and no token is empty or there twice.
  [[nodiscard]] static Trie make(const std::vector<std::pair<std::string_view, std::uint32_t>>& tokens);
};

struct Slice {
  CharSet characters;
  MaskWords tokens;
  Trie rest;  // the tokens that do not belong to the slice
  // [states][256]: an automaton over bytes that reads characters of the class. State 0 is dead; in state 1 a character begins.
  std::vector<std::array<std::uint8_t, 256>> automaton;
  std::uint32_t longest = 0;  // length of the slice's longest token, in characters
};

struct [[gnu::visibility("hidden")]] TokenTrie {
  std::size_t size = 0;  // number of tokens in the whole vocabulary
  Trie all;
  std::vector<Slice> slices;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> twins;  // a token of the tree, and another token with the same bytes
  std::vector<std::uint32_t> ends;  // tokens that end a generation

  [[nodiscard]] static TokenTrie make(const std::vector<std::string_view>& tokens, std::vector<std::uint32_t> ends);
  [[nodiscard]] std::size_t words() const noexcept { return (size + 63) / 64; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

}  // namespace tessera::grammar
