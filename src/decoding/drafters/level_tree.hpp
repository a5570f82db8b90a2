// Grows a tree of drafts from heads that read no drafts (Medusa): each head guesses the tokens of one level, whatever the drafts before it
// are. So after every draft of a level, the likely tokens of the next level are the same. Drafts are added likeliest first. The chance of a
// draft is the product of the probabilities of the draft and of the drafts before it.
//
//   level 0: cat 0.6, dog 0.3   level 1: sat 0.7, ran 0.2      tree: cat 0.6, cat sat 0.42, dog 0.3, dog sat 0.21, cat ran 0.12, ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>

#include "decoding/drafters/likely_tokens.hpp"

namespace tessera::detail {

class LevelTree {
 public:
  // `chains`: limit of chains, including the trunk.
  LevelTree(std::span<TreeDraft> out, std::size_t chains) noexcept : out_(out), chains_(chains) {}

  [[nodiscard]] std::size_t levels() const noexcept { return levels_.size(); }

  // Adds the next level. `drawn` is the token that the request's sampler drew from the head's logits. `drawn` becomes the level's first
  // token, and counts as likely as the likeliest token. The reason: the model's token at this position is drawn with the same random number,
  // so that it often is the same token.
  void add_level(Token drawn, std::span<const float> logits) {
    std::vector<LikelyToken> level;
    find_likeliest(logits, chains_, level);
    const double best = level.empty() ? 1.0 : level.front().share;
    std::erase_if(level, [&](const LikelyToken& one) { return one.token == drawn; });
    level.insert(level.begin(), {drawn, best});
    levels_.push_back(std::move(level));
  }

  // Fills `out` and returns the number of drafts.
  std::size_t grow() {
    std::vector<Next> next;
    if (!levels_.empty()) next.push_back({.chance = levels_[0][0].share});
    std::size_t n = 0, branches = chains_ - 1;
    while (n < out_.size() && !next.empty()) {
      const auto likeliest = std::ranges::max_element(next, {}, &Next::chance);
      const Next one = *likeliest;
      next.erase(likeliest);
      if (one.rank > 0 && branches == 0) continue;
      if (one.rank > 0) --branches;  // the first child continues its parent's chain
      const std::vector<LikelyToken>& level = levels_[one.level];
      out_[n] = {.token = level[one.rank].token, .parent = one.parent};
      // The next sibling is added after this draft, so that a parent's likeliest child is its first.
      if (one.rank + 1 < level.size()) {
        next.push_back({one.behind * level[one.rank + 1].share, one.behind, one.level, one.rank + 1, one.parent});
      }
      if (one.level + 1 < levels_.size()) next.push_back({one.chance * levels_[one.level + 1][0].share, one.chance, one.level + 1, 0, n});
      ++n;
    }
    return n;
  }

 private:
  // A draft that may be added next.
  struct Next {
    double chance = 0.0;
    double behind = 1.0;  // chance of the parent
    std::size_t level = 0, rank = 0;
    std::size_t parent = kNoDraft;
  };

  std::span<TreeDraft> out_;
  std::size_t chains_;
  std::vector<std::vector<LikelyToken>> levels_;
};

}  // namespace tessera::detail
