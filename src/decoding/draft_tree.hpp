// The drafts of a step as a tree. The step computes the tree as chains, each of which is a sequence. The first child of a draft continues
// the draft's chain; every other child begins a new chain, which branches off there.
//
//   the - cat - sat - on        chain 0, the trunk: rows of the session itself
//    |     '- - ran             chain 1: in a fork of chain 0's cache
//    '- - dog - is              chain 2: in another fork
//
// The chains that branch off behind a draft directly follow the draft's own chain. A draft's key and value belong to these chains too:
// those of `cat` to chain 1, those of `the` to chains 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>  // and, by it, the cache

namespace tessera::detail {

class DraftTree {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Draft {
    Token token = 0;
    std::size_t parent = kNone;  // index of the draft before it; kNone: it follows the sequence's last token
    std::size_t chain = 0;
    std::size_t depth = 0;       // number of drafts between the sequence's last token and this one
  };
  struct Chain {
    std::size_t depth = 0;         // depth of its first draft
    std::size_t of = 0;            // index of the chain that it branches off
    // true: not used any more, for want of pages, because its rows failed, or because the sequence went another way.
    bool is_left_out = false;
    std::optional<KvCache> cache = {};  // set for a branch whose rows are in a run: the fork that takes their keys and values
    std::size_t part = 0;               // index of the branch's part in the run
  };
  struct Limits {
    std::size_t vocab = 0;
    std::size_t chains = 1;         // largest number of chains
    std::uint64_t page_tokens = 0;  // tokens of a page; a branch ends at the end of the page in which it begins
    std::uint64_t position = 0;     // position of the drafts of depth 0 in the cache
  };

  explicit DraftTree(std::size_t most_drafts) { drafts_.reserve(most_drafts); }

  // Makes the tree from the given drafts. A draft is left out if its parent is not an earlier draft, if it exceeds the limits, or if its
  // parent is left out. `ends(token)` returns whether no draft may follow this token.
  template <class Ends>
  void grow(std::span<const TreeDraft> from, const Limits& limits, const Ends& ends) {
    clear();
    kept_.assign(from.size(), kNone);
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].parent == kNoDraft) kept_[i] = add(from[i].token, kNone, limits);
      else if (from[i].parent < i && kept_[from[i].parent] != kNone && !ends(from[from[i].parent].token)) kept_[i] = add(from[i].token, kept_[from[i].parent], limits);
    }
    sort_chains();
  }
  void clear() noexcept {
    drafts_.clear();
    chains_.clear();
  }

  [[nodiscard]] const std::vector<Draft>& drafts() const noexcept { return drafts_; }
  [[nodiscard]] std::vector<Chain>& chains() noexcept { return chains_; }
  // Returns how many drafts are not left out.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t length(std::size_t chain) const noexcept;
  // Returns the index of the draft that follows `draft` (kNone: the sequence) and has this token; kNone if there is none.
  [[nodiscard]] std::size_t child(std::size_t draft, Token token) const noexcept;
  // Returns how many chains branch off behind the draft, directly or from other branches. They directly follow the draft's own chain. If
  // `draft` is kNone, these are all chains but the trunk.
  [[nodiscard]] std::size_t branches_behind(std::size_t draft) const noexcept;
  // Returns how many drafts the longest path has.
  [[nodiscard]] std::size_t depth() const noexcept;
  // Marks the chain, and all chains that branch off it, as left out.
  void leave_out(std::size_t chain) noexcept;
  // Call it when the draft has been drawn and so has become the sequence's last token. Keeps the draft's chain and the chains that branch
  // off behind the draft. Leaves out all others.
  void follow(std::size_t draft) noexcept;

 private:
  std::size_t add(Token token, std::size_t parent, const Limits& limits);
  void sort_chains();
  [[nodiscard]] bool leads_to(std::size_t draft, std::size_t chain) const noexcept;

  std::vector<Draft> drafts_;        // a parent comes before its children
  std::vector<Chain> chains_;
  std::vector<std::size_t> kept_;    // [number of given drafts]: the draft's index in drafts_, or kNone if it was left out
};

}  // namespace tessera::detail
