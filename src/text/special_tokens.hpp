// Special tokens are found in a text before anything else is encoded. User-defined tokens always are; control and unknown tokens only if
// the caller wants them parsed. If tokens overlap, the longest token of the whole text is taken first, then the longest that does not
// overlap it, and so on (as llama.cpp's tokenizer_st_partition does). Of equally long ones the lower id is taken first, then the
// leftmost.
//
// An automaton (Aho and Corasick, 1975) reads the text once, and knows at each byte which tokens end there. When it is back at its root,
// no token has begun that may still continue. So overlaps of the tokens found since it last left the root can be resolved without reading
// on.
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

  // Finds the tokens in a text one after another. Its memory is at most nine bytes for each byte of the text, and usually none.
  class Finder {
   public:
    Finder(const SpecialTokens& tokens, const Vocabulary& vocabulary, std::string_view text, Special special) noexcept
        : tokens_(tokens), vocabulary_(vocabulary), text_(text), parse_(special == Special::parse) {}
    // Finds the next token. Returns false if there is none.
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
    std::size_t read_ = 0;   // how many bytes of the text the automaton has read
    std::size_t begin_ = 0;  // offset in the text of the present stretch
    std::size_t at_ = 0;     // how many bytes of the stretch next() has passed
    std::vector<std::uint32_t> ends_;  // [byte of the stretch]: node of the token that ends with this byte; 0: none
  };

 private:
  // A node stands for the text on the path from the root (node 0) to it, with which one or more tokens begin. Nodes are numbered by the
  // length of their texts, and then in the order of their bytes, so a node's children have consecutive numbers.
  struct Node {
    std::uint32_t first_child;  // number of the first child; the children end where the next node's begin
    std::uint32_t fallback;     // node of the longest proper suffix of this node's text that is also a node
    std::uint32_t token;        // node of the longest token that ends this node's text (perhaps the node itself); 0: none
    std::uint32_t size;         // length of the node's text, in bytes
    std::uint32_t id;           // id of the token whose text is the node's text; kNoToken: none
  };
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;
  [[nodiscard]] std::uint32_t step(std::uint32_t node, unsigned char byte) const noexcept;
  [[nodiscard]] bool is_leaf(std::uint32_t node) const noexcept {
    return nodes_[node].first_child == nodes_[node + 1].first_child;
  }
  void link(std::uint32_t parent);

  std::vector<Node> nodes_;           // has one more entry than there are nodes, whose first_child is where the last node's children end
  std::vector<unsigned char> bytes_;  // [nodes]: the last byte of a node's text
  std::array<std::uint32_t, 256> roots_children_{};  // [byte]: the root's child; 0: none
  bool any_user_defined_ = false;
};

}  // namespace tessera::detail
