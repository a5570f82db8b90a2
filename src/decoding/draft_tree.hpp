// Drafts as rows of a step. A tree is cut into chains, each of which is a sequence: the first child of a draft continues the
// draft's chain, every other child begins a new chain, which branches off there.
//
//   the - cat - sat - on        chain 0, the trunk: rows of the session itself
//    |     '- - ran             chain 1: in a fork of chain 0's cache
//    '- - dog - is              chain 2: in another fork
//
// The chains that branch off behind a draft come right behind the draft's own chain: the key and value of `cat` belong to chain 1
// too, the key and value of `the` to chains 1 and 2.
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
    std::size_t parent = kNone;  // kNone: the sequence's last token
    std::size_t chain = 0;
    std::size_t depth = 0;       // drafts between the sequence's last token and this one
  };
  struct Chain {
    std::size_t depth = 0;         // depth of its first draft
    std::size_t of = 0;            // the chain that it branches off
    bool is_left_out = false;      // not used: there are no pages for it, its rows failed, or the sequence went another way
    std::optional<KvCache> cache = {};  // cache of a branch whose rows are in a run
    std::size_t part = 0;               // the branch's part of the run
  };
  struct Limits {
    std::size_t vocab = 0;
    std::size_t chains = 1;         // the most chains
    std::uint64_t page_tokens = 0;  // tokens of a page: a branch ends with the page in which it begins
    std::uint64_t position = 0;     // position of drafts of depth 0
  };

  explicit DraftTree(std::size_t most_drafts) { drafts_.reserve(most_drafts); }

  // Makes the tree of the given drafts. Leaves out drafts whose parent is not an earlier draft, drafts beyond the limits, and all drafts
  // that follow one of these. `ends(token)`: returns whether no draft may follow the token.
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
  // Returns the draft of this token that follows `draft` (kNone: the sequence); kNone if there is none.
  [[nodiscard]] std::size_t child(std::size_t draft, Token token) const noexcept;
  // Returns how many chains branch off behind the draft, directly or from another branch. These chains come right behind the draft's own
  // chain. kNone: all chains but the trunk.
  [[nodiscard]] std::size_t branches_behind(std::size_t draft) const noexcept;
  // Returns the number of drafts on the longest path.
  [[nodiscard]] std::size_t depth() const noexcept;
  // Leaves out the chain and all that branch off it.
  void leave_out(std::size_t chain) noexcept;
  // Call it when the draft has become the sequence's last token. Keeps the draft's own chain and the chains that branch off behind the
  // draft, and leaves out all others.
  void follow(std::size_t draft) noexcept;

 private:
  std::size_t add(Token token, std::size_t parent, const Limits& limits);
  void sort_chains();
  [[nodiscard]] bool leads_to(std::size_t draft, std::size_t chain) const noexcept;

  std::vector<Draft> drafts_;        // a parent before its children
  std::vector<Chain> chains_;
  std::vector<std::size_t> kept_;    // [given drafts]: index into drafts_, or kNone
};

}  // namespace tessera::detail
