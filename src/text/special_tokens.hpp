// Tokens that are found in a text before anything else looks at it: user-defined ones always; control and unknown ones if they are to be
// parsed. The longest token of all is placed first wherever it stands, then the next (llama.cpp's tokenizer_st_partition); of equal
// length the lower id, then the leftmost. No two overlap.
//
// An automaton (Aho and Corasick, 1975) reads the text once, and knows at each byte which tokens end there. When it is back at its root no
// token is under way, so the tokens found since it was last at the root can be placed without looking further.
#pragma once

#include <array>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace tessera::detail {

struct SpecialMatch {
  std::size_t begin, size;
  std::uint32_t id;
};

class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  // Finds the matches in a text one after another. Takes at most nine bytes for each byte of the text, and mostly none.
  class Finder {
   public:
    Finder(const SpecialTokens& tokens, const Vocabulary& vocabulary, std::string_view text, Special special) noexcept
        : tokens_(tokens), vocabulary_(vocabulary), text_(text), parse_(special == Special::parse) {}
    // Returns false if no match is left.
    [[nodiscard]] bool next(SpecialMatch& match);

   private:
    [[nodiscard]] bool next_stretch();
    [[nodiscard]] bool overlap() const noexcept;
    void settle();
    [[nodiscard]] std::uint32_t token_at(std::uint32_t node, std::uint32_t longest) const noexcept;
    [[nodiscard]] std::uint32_t size_at(std::size_t i) const noexcept { return tokens_.nodes_[ends_[i]].size; }

    const SpecialTokens& tokens_;
    const Vocabulary& vocabulary_;
    std::string_view text_;
    bool parse_;
    std::size_t read_ = 0;   // bytes that the automaton has read
    std::size_t begin_ = 0;  // beginning of the stretch that is being handed out
    std::size_t at_ = 0;     // bytes of the stretch that are handed out
    std::vector<std::uint32_t> ends_;  // by byte of the stretch: node of the token that ends with the byte; 0: none
  };

 private:
  // A node is a text, the beginning of some tokens, that leads to the node from the root (node 0). Nodes are numbered by length, then
  // bytewise, so that a node's children stand together.
  struct Node {
    std::uint32_t first_child;  // the children end where the next node's begin
    std::uint32_t fallback;     // the longest proper suffix of the node's text that is a node
    std::uint32_t token;        // the longest suffix of the node's text, itself included, that is a token; 0: none
    std::uint32_t size;         // bytes of the node's text
    std::uint32_t id;           // id of the token that the node is, or kNoToken
  };
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;
  [[nodiscard]] std::uint32_t step(std::uint32_t node, unsigned char byte) const noexcept;
  [[nodiscard]] bool is_leaf(std::uint32_t node) const noexcept {
    return nodes_[node].first_child == nodes_[node + 1].first_child;
  }
  void link(std::uint32_t parent);

  std::vector<Node> nodes_;           // one more than there are nodes: it says where the last node's children end
  std::vector<unsigned char> bytes_;  // [nodes]: the last byte of a node's text
  std::array<std::uint32_t, 256> roots_children_{};  // by byte; 0: none
  bool any_user_defined_ = false;
};

}  // namespace tessera::detail
