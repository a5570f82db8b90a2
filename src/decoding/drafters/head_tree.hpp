// Grows a tree of drafts from the logits of heads that read the drafts, likeliest drafts first (dynamic trees; Li et al. 2024, EAGLE-2).
// The trunk consists of the drawn drafts. Other likely tokens become leaves beside the trunk's drafts. The chance of a draft is the product
// of the probabilities that the heads assign to the draft and to the drafts before it.
//
//   the cat - sat 0.6 - on 0.54 - the 0.38     The numbers are chances. "is" is added when the trunk's next draft is less likely than 0.3.
//          '- is 0.3                           Until then the trunk grows longer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>

#include "decoding/drafters/likely_tokens.hpp"

namespace tessera::detail {

class HeadTree {
 public:
  // `chains`: limit of chains, including the trunk.
  HeadTree(std::span<TreeDraft> out, std::size_t chains) noexcept : out_(out), branches_(chains - 1) {}

  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  [[nodiscard]] bool is_full() const noexcept { return n_ == out_.size(); }

  // Adds the leaves that are at least as likely as the trunk's next draft can be. Call this before guessing the next draft.
  void add_likely_leaves() { add_leaves(chance_); }

  // Adds the trunk's next draft `drawn`, which was drawn from `logits`, and remembers other likely tokens as leaves beside it.
  void add(Token drawn, std::span<const float> logits) {
    find_likeliest(logits, branches_ + 1, likeliest_);  // one more, because one of them may be the drawn token
    const double best = likeliest_.empty() ? 1.0 : likeliest_.front().share;
    add_leaves(std::nextafter(chance_ * best, 2.0));  // adds the leaves that are likelier than the trunk's next draft
    if (is_full()) return;
    const std::size_t parent = trunk_;
    trunk_ = n_;
    out_[n_++] = {.token = drawn, .parent = parent};
    for (const LikelyToken& one : likeliest_) {
      if (one.token != drawn) leaves_.push_back({one.token, parent, chance_ * one.share});
    }
    std::ranges::stable_sort(leaves_, std::ranges::greater(), &Leaf::chance);
    chance_ *= best;
  }

  // Adds leaves until the tree is full. Call this when the heads make no further guess.
  void add_other_leaves() { add_leaves(0.0); }

 private:
  struct Leaf {
    Token token = 0;
    std::size_t parent = kNoDraft;
    double chance = 0.0;
  };

  void add_leaves(double least) {
    while (!is_full() && branches_ > 0 && !leaves_.empty() && leaves_.front().chance >= least) {
      out_[n_++] = {.token = leaves_.front().token, .parent = leaves_.front().parent};
      leaves_.erase(leaves_.begin());
      --branches_;
    }
  }

  std::span<TreeDraft> out_;
  std::size_t branches_;             // number of chains that may still begin
  std::size_t n_ = 0;
  std::size_t trunk_ = kNoDraft;     // the trunk's last draft
  double chance_ = 1.0;              // chance of the trunk's last draft
  std::vector<LikelyToken> likeliest_;  // likeliest tokens of the last logits
  std::vector<Leaf> leaves_;         // leaves that are not in the tree yet, likeliest first
};

}  // namespace tessera::detail
