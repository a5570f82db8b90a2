// Finds pages by the tokens that led to them. A tree: a root for each identity (model, numerics, KV type, salt) and
// layout, below it one node for each full page of tokens, which has a page of every group of layers. Nodes are found by
// a chain of hashes (a node's hash is over its parent's hash and its tokens) and confirmed by what they are: the parent
// node itself, and the tokens. So by induction a hit has the same identity and the same tokens from the beginning,
// whatever the hashes.
//
// Of a group behind a window a node may lack the page: it is needed only until the window has passed it. A node without
// any page is still the way to those below it.
//
// Not thread-safe: the pools' mutex guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/pages/page_file.hpp"

namespace tessera::detail {

using PageId = std::uint32_t;

inline constexpr PageId kNoPage = ~PageId{0};

class PagePool;
struct PrefixNode;

// One group's page of a node.
struct IndexedPage {
  PrefixNode* node = nullptr;
  PagePool* pool = nullptr;
  PageId id = kNoPage;                       // kNoPage: not in memory
  std::shared_ptr<PageFile::Extent> stored;  // a copy in the file
  IndexedPage* previous_stored = nullptr;    // in the pool's list of those with a copy
  IndexedPage* next_stored = nullptr;

  [[nodiscard]] bool exists() const noexcept { return id != kNoPage || stored != nullptr; }
};

// A layout that caches have, and the pools of its groups' pages.
struct PooledLayout {
  KvLayout layout;
  std::vector<PagePool*> pools;  // [group]
};

// Nobody but the index owns a node: others have weak_from_this(), which is empty once the node has been removed.
struct PrefixNode : std::enable_shared_from_this<PrefixNode> {
  Hash128 hash;
  std::string identity;                  // of a root
  const PooledLayout* layout = nullptr;
  std::vector<Token> tokens;             // of a page; a root has none
  std::vector<IndexedPage> pages;        // [group]; a root has none
  PrefixNode* parent = nullptr;
  PrefixNode* first_child = nullptr;
  PrefixNode* next_sibling = nullptr;
  PrefixNode* previous_sibling = nullptr;
  bool counted_as_empty = false;

  [[nodiscard]] bool is_root() const noexcept { return parent == nullptr; }
  [[nodiscard]] bool is_empty() const noexcept {
    for (const IndexedPage& page : pages) {
      if (page.exists()) return false;
    }
    return true;
  }
};

class PrefixIndex {
 public:
  // nullptr: there is none.
  [[nodiscard]] PrefixNode* root(std::string_view identity, const PooledLayout& layout) const noexcept;
  [[nodiscard]] PrefixNode* child(const PrefixNode& parent, std::span<const Token> tokens) const noexcept;
  // Throws bad_alloc, and has changed nothing then. There must be no such node yet.
  PrefixNode& add_root(std::string_view identity, const PooledLayout& layout);
  PrefixNode& add_child(PrefixNode& parent, std::span<const Token> tokens);
  // Removes the node and all below it, calling detach(page) for each of their pages, the deepest node's first; then the
  // root, if that has no children left.
  template <class Fn>
  void remove(PrefixNode& top, Fn&& detach) noexcept {
    PrefixNode* const stop = top.parent;
    PrefixNode* node = &top;
    while (node != stop) {
      if (node->first_child != nullptr) {
        node = node->first_child;
        continue;
      }
      PrefixNode* const next = node->parent;
      for (IndexedPage& page : node->pages) detach(page);
      erase(*node);
      node = next;
    }
    if (stop != nullptr && stop->is_root()) drop_childless(*stop);
  }
  void drop_childless(PrefixNode& root) noexcept {
    if (root.first_child == nullptr) erase(root);
  }
  // Removes the node if it has neither pages nor children, and so on upwards.
  void prune(PrefixNode& node) noexcept;
  // To be called when a node may have got its first page or lost its last one.
  void count_empty(PrefixNode& node) noexcept {
    const bool empty = !node.is_root() && node.is_empty();
    if (empty != node.counted_as_empty) empty_ += empty ? 1 : std::size_t(-1);
    node.counted_as_empty = empty;
  }
  [[nodiscard]] std::size_t empty() const noexcept { return empty_; }        // nodes without any page
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }  // roots too

  // Told of each node but roots: after it has come, before it goes.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void stored(const PrefixNode& node) noexcept = 0;
    virtual void removed(const PrefixNode& node) noexcept = 0;
  };
  void add_listener(Listener& listener) { listeners_.push_back(&listener); }
  void remove_listener(Listener& listener) noexcept { std::erase(listeners_, &listener); }
  // All nodes but roots, each behind its parent.
  template <class Fn>
  void for_each(Fn&& tell) const {
    for (const auto& [hash, root] : nodes_) {
      if (!root->is_root()) continue;
      const PrefixNode* node = root->first_child;
      while (node != nullptr) {
        tell(*node);
        if (node->first_child != nullptr) {
          node = node->first_child;
          continue;
        }
        while (!node->is_root() && node->next_sibling == nullptr) node = node->parent;
        node = node->next_sibling;  // a root has none
      }
    }
  }

  explicit PrefixIndex(PrefixHash hash) noexcept : hash_(hash) {}

 private:
  struct First64 {
    std::size_t operator()(const Hash128& hash) const noexcept { return static_cast<std::size_t>(hash.low); }
  };
  [[nodiscard]] Hash128 root_hash(std::string_view identity) const noexcept;
  void erase(PrefixNode& leaf) noexcept;

  PrefixHash hash_;
  std::unordered_multimap<Hash128, std::shared_ptr<PrefixNode>, First64> nodes_;
  std::size_t empty_ = 0;
  std::vector<Listener*> listeners_;
};

}  // namespace tessera::detail
