// Grows a tree of drafts from the logits of draft heads, the likeliest drafts first (dynamic trees; Li et al. 2024, EAGLE-2). The trunk has the
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

namespace tessera::detail {

class HeadTree {
 public:
  // `chains`: the most chains, the trunk included. The vectors' memory is used again by the next tree.
  HeadTree(std::span<TreeDraft> out, std::size_t chains) noexcept : out_(out), branches_(chains - 1) {}

  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  [[nodiscard]] bool is_full() const noexcept { return n_ == out_.size(); }

  // Adds leaves that are at least as likely as the trunk's next draft can be. Call it before the next draft is guessed.
  void add_likely_leaves() { add_leaves(chance_); }

  // Adds the trunk's next draft, which was drawn from `logits`, and remembers other likely tokens as leaves beside it.
  void add(Token drawn, std::span<const float> logits) {
    find_likeliest(logits);
    const double best = likeliest_.empty() ? 1.0 : likeliest_.front().chance;
    add_leaves(std::nextafter(chance_ * best, 2.0));  // leaves that are likelier
    if (is_full()) return;
    const std::size_t parent = trunk_;
    trunk_ = n_;
    out_[n_++] = {.token = drawn, .parent = parent};
    for (const Leaf& one : likeliest_) {
      if (one.token != drawn) leaves_.push_back({one.token, parent, chance_ * one.chance});
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

  // Finds one token more than may become leaves, with their shares of the softmax.
  void find_likeliest(std::span<const float> logits) {
    likeliest_.clear();
    const auto is_before = [](const Leaf& a, const Leaf& b) { return a.chance > b.chance; };
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (likeliest_.size() > branches_ && !(static_cast<double>(logits[i]) > likeliest_.back().chance)) continue;
      if (!(logits[i] > -1e30f)) continue;
      const Leaf leaf{.token = static_cast<Token>(i), .chance = static_cast<double>(logits[i])};
      likeliest_.insert(std::ranges::upper_bound(likeliest_, leaf, is_before), leaf);
      if (likeliest_.size() > branches_ + 1) likeliest_.pop_back();
    }
    if (likeliest_.empty()) return;
    const double largest = likeliest_.front().chance;
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
    for (Leaf& leaf : likeliest_) leaf.chance = std::exp(leaf.chance - largest) / sum;
  }

  std::span<TreeDraft> out_;
  std::size_t branches_;             // chains that may still begin
  std::size_t n_ = 0;
  std::size_t trunk_ = kNoDraft;     // the trunk's last draft
  double chance_ = 1.0;              // of the trunk's last draft
  std::vector<Leaf> likeliest_;      // of the last logits, the likeliest first
  std::vector<Leaf> leaves_;         // that are not in the tree yet, the likeliest first
};

}  // namespace tessera::detail
