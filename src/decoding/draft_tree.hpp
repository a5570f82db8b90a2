// The drafts of a step as a tree. The step computes the tree as chains, and each chain is a sequence. The first child of a draft continues
// the draft's chain; every other child begins a new chain, which branches off after the draft.
//
//   the - cat - sat - on        chain 0, the trunk: rows of the session itself
//    |     '- - ran             chain 1: in a fork of chain 0's cache
//    '- - dog - is              chain 2: in another fork
//
// The keys and values of `cat` are also written to chain 1, and those of `the` to chains 1 and 2, because these chains continue after them.
// Among the chains that are not left out, the chains that branch off after a draft directly follow the draft's own chain, so that a number
// names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>  // also declares the cache

namespace tessera::detail {

class DraftTree {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Draft {
    Token token = 0;
    std::size_t parent = kNone;  // index of the draft before this draft; kNone: it follows the sequence's last token
    std::size_t chain = 0;
    std::size_t depth = 0;       // number of drafts between the sequence's last token and this draft
  };
  struct Chain {
    std::size_t depth = 0;         // depth of its first draft
    std::size_t of = 0;            // index of the chain from which this chain branches off
    // true: no longer used, because there were no pages, its rows failed, or the sequence continued differently.
    bool is_left_out = false;
    std::optional<KvCache> cache = {};  // set for a branch whose rows are in a run: the fork to which their keys and values are written
    std::size_t part = 0;               // index of the branch's part in the run
  };
  struct Limits {
    std::size_t vocab = 0;
    std::size_t chains = 1;         // limit of chains
    std::uint64_t page_tokens = 0;  // tokens of a page; a branch ends at the end of the page in which it begins
    std::uint64_t position = 0;     // position of the drafts of depth 0 in the cache
  };

  explicit DraftTree(std::size_t most_drafts) { drafts_.reserve(most_drafts); }

  // Makes the tree from the drafter's drafts. Leaves out a draft if its parent is not an earlier draft, if its parent was left out, if no
  // draft may follow its parent's token (`ends(token)` returns true), or if it exceeds the limits.
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
  // Returns the number of drafts that are not left out.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t length(std::size_t chain) const noexcept;
  // Returns the index of the draft with this token that follows `draft` (kNone: the sequence's last token); kNone if there is no such
  // draft.
  [[nodiscard]] std::size_t child(std::size_t draft, Token token) const noexcept;
  // Returns how many chains branch off after the draft, directly or from other branches. Chains that are left out do not count. If `draft`
  // is kNone, returns how many chains are in use besides the trunk. Among the chains in use, the counted chains directly follow the draft's
  // own chain, so their number is enough to name them.
  [[nodiscard]] std::size_t branches_behind(std::size_t draft) const noexcept;
  // Returns the number of drafts on the longest path.
  [[nodiscard]] std::size_t depth() const noexcept;
  // Marks the chain, and all chains that branch off it, as left out.
  void leave_out(std::size_t chain) noexcept;
  // Call this when the draft was drawn, and so has become the sequence's last token. Leaves out all chains that do not contain the draft:
  // only the draft's own chain and the chains that branch off after it can still be followed.
  void follow(std::size_t draft) noexcept;

 private:
  std::size_t add(Token token, std::size_t parent, const Limits& limits);
  void sort_chains();
  [[nodiscard]] bool leads_to(std::size_t draft, std::size_t chain) const noexcept;

  std::vector<Draft> drafts_;        // a parent comes before its children
  std::vector<Chain> chains_;
  std::vector<std::size_t> kept_;    // [number of the drafter's drafts]: the draft's index in drafts_, or kNone if it was left out
};

}  // namespace tessera::detail
