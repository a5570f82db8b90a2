// The prefix index finds KV pages by the inputs that led to them: tokens, and the contents of embeddings (KvInputs). The index is a tree. A
// root stands for a layout and an identity (model, numerics, KV types, salt). Each node below a root stands for one full page of inputs,
// and refers to one page of every group of layers. Nodes are looked up by hash, where a node's hash covers its parent's hash and its own
// inputs. Then parent and inputs are compared, so that even if hashes collide, a hit has the same identity and the same inputs from the
// beginning on.
//
// A node may lack the page of a group with a window, because the page can be evicted once the window has passed it. A node without any
// page is still useful: it leads to the nodes below it.
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

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "kv/page_id.hpp"
#include "kv/pages/page_file.hpp"

namespace tessera::detail {

class PagePool;
struct PrefixNode;

// The page of one group that a node refers to. The page is in memory, in the file, in both, or in neither (exists() is false).
struct IndexedPage {
  PrefixNode* node = nullptr;
  PagePool* pool = nullptr;
  PageId id = kNoPage;                       // kNoPage: the page is not in memory
  std::shared_ptr<PageFile::Extent> stored;  // the page's copy in the file; nullptr: there is none
  IndexedPage* previous_stored = nullptr;    // the pool links all pages that have a copy
  IndexedPage* next_stored = nullptr;

  [[nodiscard]] bool exists() const noexcept { return id != kNoPage || stored != nullptr; }
};

// A layout of caches, with the pool that has the pages of each of its groups.
struct PooledLayout {
  KvLayout layout;
  std::uint32_t number = 0;      // index in KvPools::State::layouts
  std::vector<PagePool*> pools;  // [group]
};

// A node of the tree. Only the index owns nodes. Other code keeps a weak pointer (weak_from_this()), which is empty after the node's
// removal.
struct PrefixNode : std::enable_shared_from_this<PrefixNode> {
  Hash128 hash;
  std::string identity;                  // set in roots only
  const PooledLayout* layout = nullptr;
  std::vector<Token> tokens;             // the page's tokens, -1 for an embedding; a root has none
  std::vector<Hash128> contents;         // content_hash() of each embedding of the page, in order
  std::vector<KvAdapter> adapters;       // the adapters whose first position is in the page
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
  // Return the root of this identity and layout, and the child of `parent` with these inputs; nullptr if there is none.
  [[nodiscard]] PrefixNode* root(std::string_view identity, const PooledLayout& layout) const noexcept;
  [[nodiscard]] PrefixNode* child(const PrefixNode& parent, const KvInputs& page) const noexcept;
  // Add a root of the tree, or a child of `parent`. Preconditions: the index does not have this node yet, and the contents of the page's
  // embeddings are known (KvInputs::contents). May throw bad_alloc; then nothing has changed.
  PrefixNode& add_root(std::string_view identity, const PooledLayout& layout);
  PrefixNode& add_child(PrefixNode& parent, const KvInputs& page);
  // Removes the node and all nodes below it, the deepest first, and calls detach(page) for each of their pages. If the root has no
  // children afterwards, removes it too.
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
  // If the node has neither pages nor children, removes it, and then treats its parent in the same way.
  void prune(PrefixNode& node) noexcept;
  // Updates empty(), the number of nodes without pages. Call it when the node may have got its first page or lost its last one.
  void count_empty(PrefixNode& node) noexcept {
    const bool empty = !node.is_root() && node.is_empty();
    if (empty != node.counted_as_empty) empty_ += empty ? 1 : std::size_t(-1);
    node.counted_as_empty = empty;
  }
  [[nodiscard]] std::size_t empty() const noexcept { return empty_; }        // nodes without any page
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }  // nodes, roots included

  // A Listener is told of all nodes except roots: the index calls stored() after it has added a node, and removed() before it removes a node.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void stored(const PrefixNode& node) noexcept = 0;
    virtual void removed(const PrefixNode& node) noexcept = 0;
  };
  void add_listener(Listener& listener) { listeners_.push_back(&listener); }
  void remove_listener(Listener& listener) noexcept { std::erase(listeners_, &listener); }
  // Calls tell(node) for each node except roots. A parent comes before its children.
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
        node = node->next_sibling;  // nullptr for a root
      }
    }
  }

  explicit PrefixIndex(PrefixHash hash) noexcept : hash_(hash) {}

 private:
  struct First64 {
    std::size_t operator()(const Hash128& hash) const noexcept { return static_cast<std::size_t>(hash.low); }
  };
  [[nodiscard]] Hash128 root_hash(std::string_view identity) const noexcept;
  [[nodiscard]] Hash128 page_hash(const PrefixNode& parent, const KvInputs& page) const noexcept;
  void erase(PrefixNode& leaf) noexcept;

  PrefixHash hash_;
  std::unordered_multimap<Hash128, std::shared_ptr<PrefixNode>, First64> nodes_;
  std::size_t empty_ = 0;
  std::vector<Listener*> listeners_;
};

}  // namespace tessera::detail
