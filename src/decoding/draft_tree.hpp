// Drafts as rows of a step. A tree is cut into chains, each of which is a sequence: the first child of a draft goes on with its
// chain, every other one begins a chain of its own, which branches off there.
//
//   the - cat - sat - on        chain 0, the trunk: rows of the session itself
//    |     '- - ran             chain 1: in a fork of chain 0's cache
//    '- - dog - is              chain 2: likewise
//
// Chains lie in such an order that those that branch off behind a draft come right behind its own: the key and value of `cat` are chain
// 1's too, those of `the` chain 1's and chain 2's.
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
    std::size_t parent = kNone;  // none: the sequence's last token
    std::size_t chain = 0;
    std::size_t depth = 0;       // tokens between the sequence's and it
  };
  struct Chain {
    std::size_t depth = 0;         // of its first draft
    std::size_t of = 0;            // the chain that it branches off
    bool is_left_out = false;      // there are no pages for it, or its rows failed
    std::optional<KvCache> cache = {};  // of a branch whose rows are in a run
    std::size_t part = 0;               // of the run
  };
  struct Limits {
    std::size_t vocab = 0;
    std::size_t chains = 1;         // at most
    std::uint64_t page_tokens = 0;  // a branch ends with the page that it begins in,
    std::uint64_t position = 0;     // counted from that of drafts of depth 0
  };

  explicit DraftTree(std::size_t most_drafts) { drafts_.reserve(most_drafts); }

  // What is no tree, or beyond the limits, is left out with all that follows it. `ends(token)`: nothing follows it.
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
  // Of those that are not left out.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t length(std::size_t chain) const noexcept;
  // The draft of this token behind another one, or behind the sequence; none if there is no such.
  [[nodiscard]] std::size_t child(std::size_t draft, Token token) const noexcept;
  // How many chains branch off behind it: the next ones behind its own. Of none: all but the trunk.
  [[nodiscard]] std::size_t branches_behind(std::size_t draft) const noexcept;
  // Drafts of the longest path.
  [[nodiscard]] std::size_t depth() const noexcept;
  // The chain is not there any more, nor are those that branch off it.
  void leave_out(std::size_t chain) noexcept;
  // The sequence has gone as far as this draft: of the other chains, those that do not lead on from it are not there any more.
  void follow(std::size_t draft) noexcept;

 private:
  std::size_t add(Token token, std::size_t parent, const Limits& limits);
  void sort_chains();
  [[nodiscard]] bool leads_to(std::size_t draft, std::size_t chain) const noexcept;

  std::vector<Draft> drafts_;        // a parent before its children
  std::vector<Chain> chains_;
  std::vector<std::size_t> kept_;    // of those that were given: index into drafts_
};

}  // namespace tessera::detail
