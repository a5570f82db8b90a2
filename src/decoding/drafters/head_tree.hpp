// Grows a tree of drafts from the logits of heads that read the drafts, the likeliest drafts first (dynamic trees; Li et al. 2024, EAGLE-2). The trunk has the
// drafts that were drawn. Other likely tokens become leaves beside the trunk's drafts. A draft's chance is the product of the shares that the
// heads give to the drafts up to it.
//
//   the cat - sat 0.6 - on 0.54 - the 0.38     "is" 0.3 is likelier than "the" behind "on" once that has fallen below 0.3, so the tree
//          '- is 0.3                           branches there instead of growing longer
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
  // `chains`: the most chains, the trunk included.
  HeadTree(std::span<TreeDraft> out, std::size_t chains) noexcept : out_(out), branches_(chains - 1) {}

  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  [[nodiscard]] bool is_full() const noexcept { return n_ == out_.size(); }

  // Adds leaves that are at least as likely as the trunk's next draft can be. Call it before the next draft is guessed.
  void add_likely_leaves() { add_leaves(chance_); }

  // Adds the trunk's next draft, which was drawn from `logits`, and remembers other likely tokens as leaves beside it.
  void add(Token drawn, std::span<const float> logits) {
    find_likeliest(logits, branches_ + 1, likeliest_);  // one of them may be the drawn one
    const double best = likeliest_.empty() ? 1.0 : likeliest_.front().share;
    add_leaves(std::nextafter(chance_ * best, 2.0));  // leaves that are likelier
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

  // Adds leaves until the tree is full. Call it when the heads guess no further.
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
  std::size_t branches_;             // chains that may still begin
  std::size_t n_ = 0;
  std::size_t trunk_ = kNoDraft;     // the trunk's last draft
  double chance_ = 1.0;              // of the trunk's last draft
  std::vector<LikelyToken> likeliest_;  // of the last logits
  std::vector<Leaf> leaves_;         // that are not in the tree yet, the likeliest first
};

}  // namespace tessera::detail
