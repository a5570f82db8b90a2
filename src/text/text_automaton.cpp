#include "text/text_automaton.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

// While the nodes are made: an entry, and the node that its text has reached so far.
struct Descent {
  std::string_view text;
  std::uint32_t id, node;
};

}  // namespace

// Makes the automaton: first the nodes, level by level (a level has the nodes whose texts have the same length), then their fallbacks.
// The entries are sorted by their texts. So entries that share a node are neighbours, and the nodes of a level are made in the order of
// their numbers.
TextAutomaton::TextAutomaton(std::vector<Entry> entries) {
  std::vector<Descent> tokens;
  std::size_t bytes = 0;
  tokens.reserve(entries.size());
  for (const Entry& entry : entries) {
    tokens.push_back({entry.text, entry.id, 0});
    bytes += entry.text.size();
  }
  std::vector<Entry>().swap(entries);
  std::sort(tokens.begin(), tokens.end(), [&](const Descent& a, const Descent& b) {
    const int order = a.text.compare(b.text);
    return order != 0 ? order < 0 : a.id < b.id;
  });

  nodes_.reserve(bytes + 2);
  bytes_.reserve(bytes + 2);
  const auto make_node = [&](unsigned char byte, std::uint32_t size) {
    nodes_.push_back({0, 0, 0, size, kNone});
    bytes_.push_back(byte);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  };
  make_node(0, 0);
  std::uint32_t parents = 0;  // number of nodes whose first_child is set
  const auto begin_children = [&](std::uint32_t end) {
    for (; parents < end; ++parents) nodes_[parents].first_child = static_cast<std::uint32_t>(nodes_.size());
  };
  for (std::uint32_t size = 0; !tokens.empty(); ++size) {
    std::size_t kept = 0;
    std::uint32_t last_parent = kNone;
    for (Descent token : tokens) {
      const std::string_view text = token.text;
      if (text.size() == size) {
        std::uint32_t& id = nodes_[token.node].id;
        id = std::min(id, token.id);  // of several tokens with the same text the lowest id counts
        continue;
      }
      const auto byte = static_cast<unsigned char>(text[size]);
      if (token.node != last_parent || bytes_.back() != byte) {
        last_parent = token.node;
        begin_children(token.node + 1);
        make_node(byte, size + 1);
      }
      token.node = static_cast<std::uint32_t>(nodes_.size() - 1);
      tokens[kept++] = token;
    }
    tokens.resize(kept);
  }
  begin_children(static_cast<std::uint32_t>(nodes_.size()));
  make_node(0, 0);
  nodes_.back().first_child = static_cast<std::uint32_t>(nodes_.size() - 1);
  for (std::uint32_t node = 0; node + 1 < nodes_.size(); ++node) link(node);
}

// Sets the fallbacks of the node's children. Precondition: the fallbacks of all nodes with shorter texts are set.
void TextAutomaton::link(std::uint32_t parent) {
  for (std::uint32_t node = nodes_[parent].first_child; node < nodes_[parent + 1].first_child; ++node) {
    Node& made = nodes_[node];
    if (parent == 0) roots_children_[bytes_[node]] = node;
    made.fallback = parent == 0 ? 0 : step(nodes_[parent].fallback, bytes_[node]);
    made.token = made.id != kNone ? node : nodes_[made.fallback].token;
  }
}

std::uint64_t TextAutomaton::plan_bytes(std::uint64_t entries, std::uint64_t bytes) noexcept {
  return (bytes + 2) * (sizeof(Node) + 1) + entries * sizeof(Descent);
}

std::uint32_t TextAutomaton::child(std::uint32_t node, unsigned char byte) const noexcept {
  if (node == 0) return roots_children_[byte];
  const auto begin = bytes_.begin() + nodes_[node].first_child, end = bytes_.begin() + nodes_[node + 1].first_child;
  const auto found = std::lower_bound(begin, end, byte);
  return found != end && *found == byte ? static_cast<std::uint32_t>(found - bytes_.begin()) : 0;
}

std::uint32_t TextAutomaton::step(std::uint32_t node, unsigned char byte) const noexcept {
  for (;;) {
    if (const std::uint32_t next = child(node, byte); next != 0) return next;
    if (node == 0) return 0;
    node = nodes_[node].fallback;
  }
}

}  // namespace tessera::detail
