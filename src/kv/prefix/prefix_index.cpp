#include "kv/prefix/prefix_index.hpp"

#include <algorithm>
#include <type_traits>

namespace tessera::detail {

Hash128 PrefixIndex::root_hash(std::string_view identity) const noexcept {
  return hash_({}, std::as_bytes(std::span(identity)));
}

Hash128 PrefixIndex::page_hash(const PrefixNode& parent, const KvInputs& page) const noexcept {
  static_assert(std::has_unique_object_representations_v<Hash128>);
  static_assert(std::has_unique_object_representations_v<KvAdapter>);
  Hash128 hash = hash_(parent.hash, std::as_bytes(page.tokens));
  if (!page.contents.empty()) hash = hash_(hash, std::as_bytes(page.contents));
  if (const auto adapters = page.beginning_adapters(); !adapters.empty()) hash = hash_(hash, std::as_bytes(adapters));
  return hash;
}

PrefixNode* PrefixIndex::root(std::string_view identity, const PooledLayout& layout) const noexcept {
  const auto [first, last] = nodes_.equal_range(root_hash(identity));
  for (auto at = first; at != last; ++at) {
    PrefixNode& node = *at->second;
    if (node.is_root() && node.layout == &layout && node.identity == identity) return &node;
  }
  return nullptr;
}

PrefixNode* PrefixIndex::child(const PrefixNode& parent, const KvInputs& page) const noexcept {
  const auto [first, last] = nodes_.equal_range(page_hash(parent, page));
  for (auto at = first; at != last; ++at) {
    PrefixNode& node = *at->second;
    if (node.parent == &parent && std::ranges::equal(node.tokens, page.tokens) && std::ranges::equal(node.contents, page.contents) &&
        std::ranges::equal(node.adapters, page.beginning_adapters())) {
      return &node;
    }
  }
  return nullptr;
}

PrefixNode& PrefixIndex::add_root(std::string_view identity, const PooledLayout& layout) {
  auto node = std::make_shared<PrefixNode>();
  node->hash = root_hash(identity);
  node->identity = identity;
  node->layout = &layout;
  return *nodes_.emplace(node->hash, std::move(node))->second;
}

PrefixNode& PrefixIndex::add_child(PrefixNode& parent, const KvInputs& page) {
  auto made = std::make_shared<PrefixNode>();
  made->hash = page_hash(parent, page);
  made->layout = parent.layout;
  made->tokens.assign(page.tokens.begin(), page.tokens.end());
  made->contents.assign(page.contents.begin(), page.contents.end());
  made->adapters.assign(page.beginning_adapters().begin(), page.beginning_adapters().end());
  made->pages.resize(parent.layout->pools.size());
  for (std::size_t group = 0; group < made->pages.size(); ++group) {
    made->pages[group].node = made.get();
    made->pages[group].pool = parent.layout->pools[group];
  }
  PrefixNode& node = *nodes_.emplace(made->hash, std::move(made))->second;
  node.parent = &parent;
  node.next_sibling = parent.first_child;
  if (parent.first_child != nullptr) parent.first_child->previous_sibling = &node;
  parent.first_child = &node;
  for (Listener* listener : listeners_) listener->stored(node);
  return node;
}

void PrefixIndex::prune(PrefixNode& node) noexcept {
  PrefixNode* at = &node;
  while (!at->is_root() && at->first_child == nullptr && at->is_empty()) {
    PrefixNode* const parent = at->parent;
    erase(*at);
    at = parent;
  }
  if (at->is_root()) drop_childless(*at);
}

void PrefixIndex::erase(PrefixNode& leaf) noexcept {
  if (!leaf.is_root()) {
    for (Listener* listener : listeners_) listener->removed(leaf);
  }
  if (leaf.counted_as_empty) --empty_;
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
