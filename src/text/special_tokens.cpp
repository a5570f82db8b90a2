#include "text/special_tokens.hpp"

#include <algorithm>

#include "text/position_set.hpp"

namespace tessera::detail {
namespace {

// While the nodes are made: a token, and the node that its text has reached so far.
struct Descent {
  std::uint32_t id, node;
};

}  // namespace

// Makes the nodes level by level (by length of text). The tokens are sorted by their texts, so tokens that share a node are neighbours,
// and nodes come in the order of their numbers.
SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  std::vector<Descent> tokens;
  std::size_t count = 0, bytes = 0;
  const auto each = [&](auto&& act) {
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      if (is_special(vocabulary.type(id)) && !vocabulary.text(id).empty()) act(id);
    }
  };
  each([&](std::uint32_t id) {
    ++count;
    bytes += vocabulary.text(id).size();
    any_user_defined_ |= vocabulary.type(id) == TokenType::user_defined;
  });
  tokens.reserve(count);
  each([&](std::uint32_t id) { tokens.push_back({id, 0}); });
  std::sort(tokens.begin(), tokens.end(), [&](const Descent& a, const Descent& b) {
    const int order = vocabulary.text(a.id).compare(vocabulary.text(b.id));
    return order != 0 ? order < 0 : a.id < b.id;
  });

  nodes_.reserve(bytes + 2);
  bytes_.reserve(bytes + 2);
  const auto make_node = [&](unsigned char byte, std::uint32_t size) {
    nodes_.push_back({0, 0, 0, size, kNoToken});
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
    std::uint32_t last_parent = kNoToken;
    for (Descent token : tokens) {
      const std::string_view text = vocabulary.text(token.id);
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

// Sets the fallbacks of the node's children. Precondition: those of all nodes with shorter texts are set.
void SpecialTokens::link(std::uint32_t parent) {
  for (std::uint32_t node = nodes_[parent].first_child; node < nodes_[parent + 1].first_child; ++node) {
    Node& made = nodes_[node];
    if (parent == 0) roots_children_[bytes_[node]] = node;
    made.fallback = parent == 0 ? 0 : step(nodes_[parent].fallback, bytes_[node]);
    made.token = made.id != kNoToken ? node : nodes_[made.fallback].token;
  }
}

std::uint64_t SpecialTokens::plan_bytes(const TokenizerMetadata& metadata) noexcept {
  return (metadata.special_bytes + 2) * (sizeof(Node) + 1) + metadata.special_count * sizeof(Descent);
}

std::uint64_t SpecialTokens::memory_bytes() const noexcept {
  return nodes_.capacity() * sizeof(Node) + bytes_.capacity();
}

std::uint32_t SpecialTokens::child(std::uint32_t node, unsigned char byte) const noexcept {
  if (node == 0) return roots_children_[byte];
  const auto begin = bytes_.begin() + nodes_[node].first_child, end = bytes_.begin() + nodes_[node + 1].first_child;
  const auto found = std::lower_bound(begin, end, byte);
  return found != end && *found == byte ? static_cast<std::uint32_t>(found - bytes_.begin()) : 0;
}

std::uint32_t SpecialTokens::step(std::uint32_t node, unsigned char byte) const noexcept {
  for (;;) {
    if (const std::uint32_t next = child(node, byte); next != 0) return next;
    if (node == 0) return 0;
    node = nodes_[node].fallback;
  }
}

// Returns the node of the longest token that ends the text of `node`, is looked for, and has at most `longest` bytes; 0 if there is none.
std::uint32_t SpecialTokens::Finder::token_at(std::uint32_t node, std::uint32_t longest) const noexcept {
  const auto& nodes = tokens_.nodes_;
  for (node = nodes[node].token; node != 0; node = nodes[nodes[node].fallback].token) {
    const bool looked_for = parse_ || vocabulary_.type(nodes[node].id) == TokenType::user_defined;
    if (looked_for && nodes[node].size <= longest) return node;
  }
  return 0;
}

bool SpecialTokens::Finder::next(SpecialMatch& match) {
  for (;;) {
    while (at_ < ends_.size()) {
      const std::size_t i = at_++;
      if (ends_[i] == 0) continue;
      match = {begin_ + i + 1 - size_at(i), size_at(i), tokens_.nodes_[ends_[i]].id};
      return true;
    }
    if (!next_stretch()) return false;
    if (overlap()) settle();
  }
}

// Reads the next stretch of the text into ends_. A stretch begins at read_ and ends where the automaton is back at its root after at
// least one token, or at the end of the text. Returns false if no token was found.
bool SpecialTokens::Finder::next_stretch() {
  at_ = 0;
  ends_.clear();
  begin_ = read_;
  if (!parse_ && !tokens_.any_user_defined_) return false;
  bool any = false;
  for (std::uint32_t node = 0; read_ < text_.size();) {
    node = tokens_.step(node, static_cast<unsigned char>(text_[read_++]));
    if (ends_.size() == ends_.capacity() && node != 0) {  // grows at most to what is left of the text
      ends_.reserve(std::min(2 * ends_.size() + 64, ends_.size() + text_.size() - read_ + 1));
    }
    const std::uint32_t token = node == 0 ? 0 : token_at(node, kNoToken);
    any |= token != 0;
    while (node != 0 && tokens_.is_leaf(node)) node = tokens_.nodes_[node].fallback;
    if (node != 0 || any) ends_.push_back(token);
    if (node != 0) continue;
    if (any) return true;
    ends_.clear();
    begin_ = read_;
  }
  return any;
}

bool SpecialTokens::Finder::overlap() const noexcept {
  std::size_t free = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] == 0) continue;
    if (i + 1 - size_at(i) < free) return true;
    free = i + 1;
  }
  return false;
}

// Used if tokens of the stretch overlap. Keeps the best token (the longest), then the best of those that do not overlap it, and so on.
// ends_ then has only the tokens that are kept.
void SpecialTokens::Finder::settle() {
  const auto& nodes = tokens_.nodes_;
  const auto worse = [&](std::uint32_t a, std::uint32_t b) {
    const SpecialTokens::Node &x = nodes[ends_[a]], &y = nodes[ends_[b]];
    if (x.size != y.size) return x.size < y.size;
    return x.id != y.id ? x.id > y.id : a > b;
  };
  const auto size = static_cast<std::uint32_t>(ends_.size());
  std::vector<std::uint32_t> heap;  // last bytes of the tokens that may still be kept, the best token on top
  heap.reserve(static_cast<std::size_t>(std::ranges::count_if(ends_, [](std::uint32_t node) { return node != 0; })));
  for (std::uint32_t i = 0; i < size; ++i) {
    if (ends_[i] != 0) heap.push_back(i);
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  PositionSet taken;
  taken.clear(size);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const std::uint32_t last = heap.back(), begin = last + 1 - size_at(last);
    heap.pop_back();
    if (taken.contains(last)) {
      ends_[last] = 0;
    } else if (!taken.contains(begin)) {
      // It is enough to look at the first and the last byte: a token that was kept before is at least as long, so if it overlaps this one
      // it covers one of the two.
      for (std::uint32_t i = begin; i <= last; ++i) taken.insert(i);
    } else {
      ends_[last] = token_at(ends_[last], last - taken.previous(last));
      if (ends_[last] == 0) continue;
      heap.push_back(last);
      std::push_heap(heap.begin(), heap.end(), worse);
    }
  }
}

}  // namespace tessera::detail
