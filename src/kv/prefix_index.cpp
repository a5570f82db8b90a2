#include "kv/prefix_index.hpp"

#include <algorithm>

namespace tessera::detail {

Hash128 PrefixIndex::root_hash(std::string_view identity) const noexcept {
  return hash_({}, std::as_bytes(std::span(identity)));
}

PrefixNode* PrefixIndex::root(std::string_view identity) const noexcept {
  const auto [first, last] = nodes_.equal_range(root_hash(identity));
  for (auto at = first; at != last; ++at) {
    if (at->second->parent == nullptr && at->second->identity == identity) return at->second.get();
  }
  return nullptr;
}

PrefixNode* PrefixIndex::child(const PrefixNode& parent, std::span<const Token> tokens) const noexcept {
  const auto [first, last] = nodes_.equal_range(hash_(parent.hash, std::as_bytes(tokens)));
  for (auto at = first; at != last; ++at) {
    if (at->second->parent == &parent && std::ranges::equal(at->second->tokens, tokens)) return at->second.get();
  }
  return nullptr;
}

PrefixNode& PrefixIndex::add_root(std::string_view identity) {
  auto node = std::make_unique<PrefixNode>();
  node->hash = root_hash(identity);
  node->identity = identity;
  return *nodes_.emplace(node->hash, std::move(node))->second;
}

PrefixNode& PrefixIndex::add_child(PrefixNode& parent, std::span<const Token> tokens, PageId page) {
  auto made = std::make_unique<PrefixNode>();
  made->hash = hash_(parent.hash, std::as_bytes(tokens));
  made->tokens.assign(tokens.begin(), tokens.end());
  made->page = page;
  PrefixNode& node = *nodes_.emplace(made->hash, std::move(made))->second;
  node.parent = &parent;
  node.next_sibling = parent.first_child;
  if (parent.first_child != nullptr) parent.first_child->previous_sibling = &node;
  parent.first_child = &node;
  return node;
}

void PrefixIndex::erase(PrefixNode& leaf) noexcept {
  if (leaf.next_sibling != nullptr) leaf.next_sibling->previous_sibling = leaf.previous_sibling;
  if (leaf.previous_sibling != nullptr) {
    leaf.previous_sibling->next_sibling = leaf.next_sibling;
  } else if (leaf.parent != nullptr) {
    leaf.parent->first_child = leaf.next_sibling;
  }
  const auto [first, last] = nodes_.equal_range(leaf.hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.get() == &leaf) {
      nodes_.erase(at);
      return;
    }
  }
}

}  // namespace tessera::detail
