// The tokens of a vocabulary as a tree over their bytes, in the order of a walk: a node's children follow it, and the walk goes on at
// `skip` if it does not enter the node. A slice has the tokens that consist of characters of a frequent class. If a grammar allows every
// text of the class, the slice's tokens are allowed at once, and the walk is over the rest.
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
  std::uint32_t token;  // token that ends here; kNone: none
  std::uint16_t depth;  // index of the node's byte in a token
  std::uint8_t byte;
};

struct Trie {
  std::vector<TrieNode> nodes;
  std::size_t depth = 0;  // bytes of the longest token

  // Makes a tree. Preconditions: `tokens` are sorted by their bytes; none is empty; all differ.
  [[nodiscard]] static Trie make(const std::vector<std::pair<std::string_view, std::uint32_t>>& tokens);
};

struct Slice {
  CharSet characters;
  MaskWords tokens;
  Trie rest;  // tokens outside of the slice
  // The class as an automaton over bytes: [states][256], 0 is dead, 1 where a character begins.
  std::vector<std::array<std::uint8_t, 256>> automaton;
  std::uint32_t longest = 0;  // characters of the longest token
};

struct [[gnu::visibility("hidden")]] TokenTrie {
  std::size_t size = 0;  // number of tokens in the vocabulary
  Trie all;
  std::vector<Slice> slices;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> twins;  // a token of the tree, and another with the same bytes
  std::vector<std::uint32_t> ends;  // end-of-generation tokens

  [[nodiscard]] static TokenTrie make(const std::vector<std::string_view>& tokens, std::vector<std::uint32_t> ends);
  [[nodiscard]] std::size_t words() const noexcept { return (size + 63) / 64; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

}  // namespace tessera::grammar
