// An automaton that finds many texts at once (Aho and Corasick, 1975). The automaton reads a text byte by byte, and knows at each byte
// which of its own texts end there.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::detail {

class TextAutomaton {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  struct Entry {
    std::string_view text;  // not empty
    std::uint32_t id;
  };
  TextAutomaton() = default;  // finds nothing; step() must not be called
  explicit TextAutomaton(std::vector<Entry> entries);
  // Returns an upper bound of the memory for `entries` texts, which have `bytes` bytes together.
  [[nodiscard]] static std::uint64_t plan_bytes(std::uint64_t entries, std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return nodes_.capacity() * sizeof(Node) + bytes_.capacity(); }
  [[nodiscard]] bool empty() const noexcept { return nodes_.size() < 3; }

  // A node stands for the text on the path from the root (node 0) to this node. It exists because one or more entries begin with this
  // text. Nodes are numbered by the length of their texts, and nodes of one length in the order of their bytes. So the children of a node
  // have consecutive numbers.
  struct Node {
    std::uint32_t first_child;  // number of the first child; the children end where the next node's begin
    std::uint32_t fallback;     // node of the longest proper suffix of this node's text that is also a node
    std::uint32_t token;        // node of the longest entry that ends this node's text (perhaps the node itself); 0: none
    std::uint32_t size;         // length of the node's text, in bytes
    std::uint32_t id;           // lowest id of the entries whose text is the node's text; kNone: none
  };
  [[nodiscard]] const Node& node(std::uint32_t node) const noexcept { return nodes_[node]; }
  // Returns the node after `node` when `byte` is read.
  [[nodiscard]] std::uint32_t step(std::uint32_t node, unsigned char byte) const noexcept;
  [[nodiscard]] bool is_leaf(std::uint32_t node) const noexcept {
    return nodes_[node].first_child == nodes_[node + 1].first_child;
  }

 private:
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;
  void link(std::uint32_t parent);

  std::vector<Node> nodes_;           // has one more entry than there are nodes, whose first_child is where the last node's children end
  std::vector<unsigned char> bytes_;  // [nodes]: the last byte of a node's text
  std::array<std::uint32_t, 256> roots_children_{};  // [byte]: the root's child; 0: none
};

}  // namespace tessera::detail
