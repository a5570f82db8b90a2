// Finds pages by the tokens that led to them. A tree: a root for each identity (model, numerics, KV type, salt), below
// it one node for each full page, which knows its tokens and its parent. Nodes are found by a chain of hashes (a node's
// hash is over its parent's hash and its tokens) and confirmed by what they are: the parent node itself, and the
// tokens. So by induction a hit has the same identity and the same tokens from the beginning, whatever the hashes.
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
#include <tessera/kv/page_pool.hpp>

#include "kv/page_file.hpp"

namespace tessera::detail {

using PageId = std::uint32_t;

inline constexpr PageId kNoPage = ~PageId{0};

struct PrefixNode {
  Hash128 hash;
  std::string identity;       // of a root
  std::vector<Token> tokens;  // of a page
  PageId page = kNoPage;      // kNoPage: in the file alone
  std::shared_ptr<PageFile::Extent> stored;  // a copy in the file
  PrefixNode* previous_stored = nullptr;     // in the pool's list of those with a copy
  PrefixNode* next_stored = nullptr;
  PrefixNode* parent = nullptr;
  PrefixNode* first_child = nullptr;
  PrefixNode* next_sibling = nullptr;
  PrefixNode* previous_sibling = nullptr;
};

class PrefixIndex {
 public:
  explicit PrefixIndex(PrefixHash hash) noexcept : hash_(hash) {}

  // nullptr: there is none.
  [[nodiscard]] PrefixNode* root(std::string_view identity) const noexcept;
  [[nodiscard]] PrefixNode* child(const PrefixNode& parent, std::span<const Token> tokens) const noexcept;
  // Throws bad_alloc, and has changed nothing then. There must be no such node yet.
  PrefixNode& add_root(std::string_view identity);
  PrefixNode& add_child(PrefixNode& parent, std::span<const Token> tokens, PageId page);
  // Removes the node and all below it, calling removed(node) for each, deepest first; then roots without children.
  template <class Fn>
  void remove(PrefixNode& top, Fn&& removed) noexcept {
    PrefixNode* const stop = top.parent;
    PrefixNode* node = &top;
    while (node != stop) {
      if (node->first_child != nullptr) {
        node = node->first_child;
        continue;
      }
      PrefixNode* const next = node->parent;
      removed(*node);
      erase(*node);
      node = next;
    }
    if (stop != nullptr && stop->parent == nullptr) drop_childless(*stop);
  }
  void drop_childless(PrefixNode& root) noexcept {
    if (root.first_child == nullptr) erase(root);
  }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }  // roots too

 private:
  struct First64 {
    std::size_t operator()(const Hash128& hash) const noexcept { return static_cast<std::size_t>(hash.low); }
  };
  [[nodiscard]] Hash128 root_hash(std::string_view identity) const noexcept;
  void erase(PrefixNode& leaf) noexcept;

  PrefixHash hash_;
  std::unordered_multimap<Hash128, std::unique_ptr<PrefixNode>, First64> nodes_;
};

}  // namespace tessera::detail
