#include "decoding/draft_tree.hpp"

#include <algorithm>
#include <utility>

namespace tessera::detail {

// Adds a draft and returns its index. If the parent already has a child with this token, returns that child's index. Returns kNone if the
// draft is left out: the token is not in the vocabulary, the tree is full, there are too many chains, or the draft's chain is a branch that
// would reach into another page.
std::size_t DraftTree::add(Token token, std::size_t parent, const Limits& limits) {
  if (token < 0 || static_cast<std::size_t>(token) >= limits.vocab || drafts_.size() == drafts_.capacity()) return kNone;
  if (const std::size_t same = child(parent, token); same != kNone) return same;
  const bool is_first = std::ranges::find(drafts_, parent, &Draft::parent) == drafts_.end();
  const std::size_t depth = parent == kNone ? 0 : drafts_[parent].depth + 1, of = parent == kNone ? 0 : drafts_[parent].chain;
  if (!is_first || chains_.empty()) {
    if (chains_.size() >= limits.chains) return kNone;
    chains_.push_back({.depth = depth, .of = of});
  }
  const std::size_t chain = is_first ? of : chains_.size() - 1;
  const auto page = [&](std::size_t at) { return (limits.position + at) / limits.page_tokens; };
  if (chain != 0 && page(depth) != page(chains_[chain].depth)) return kNone;
  drafts_.push_back({.token = token, .parent = parent, .chain = chain, .depth = depth});
  return drafts_.size() - 1;
}

// Sorts the chains. After every chain come the chains that branch off it, each with its own branches directly after it. Of the chains that
// branch off the same chain, the one that begins deepest comes first. In this order the chains that need a draft's key and value directly
// follow the draft's own chain, so their number is enough to name them (branches_behind()).
void DraftTree::sort_chains() {
  if (chains_.size() < 2) return;
  std::vector<std::size_t> order, place(chains_.size()), to_place;
  order.reserve(chains_.size());
  to_place.push_back(0);
  while (!to_place.empty()) {
    const std::size_t chain = to_place.back();
    to_place.pop_back();
    place[chain] = order.size();
    order.push_back(chain);
    const auto first = static_cast<std::ptrdiff_t>(to_place.size());
    for (std::size_t other = 1; other < chains_.size(); ++other) {
      if (chains_[other].of == chain) to_place.push_back(other);
    }
    std::stable_sort(to_place.begin() + first, to_place.end(), [&](std::size_t a, std::size_t b) { return chains_[a].depth < chains_[b].depth; });
  }
  std::vector<Chain> sorted;
  sorted.reserve(chains_.size());
  for (const std::size_t chain : order) {
    sorted.push_back(std::move(chains_[chain]));
    sorted.back().of = place[sorted.back().of];
  }
  for (Draft& draft : drafts_) draft.chain = place[draft.chain];
  chains_ = std::move(sorted);
}

std::size_t DraftTree::size() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(drafts_, [&](const Draft& draft) { return !chains_[draft.chain].is_left_out; }));
}

std::size_t DraftTree::length(std::size_t chain) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(drafts_, chain, &Draft::chain));
}

std::size_t DraftTree::child(std::size_t draft, Token token) const noexcept {
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    const Draft& one = drafts_[i];
    if (one.parent == draft && one.token == token && !chains_[one.chain].is_left_out) return i;
  }
  return kNone;
}

bool DraftTree::leads_to(std::size_t draft, std::size_t chain) const noexcept {
  if (draft == kNone) return true;
  std::size_t at = static_cast<std::size_t>(std::ranges::find(drafts_, chain, &Draft::chain) - drafts_.begin());
  while (at != kNone && at != draft) at = drafts_[at].parent;
  return at == draft;
}

std::size_t DraftTree::branches_behind(std::size_t draft) const noexcept {
  std::size_t n = 0;
  for (std::size_t chain = draft == kNone ? 1 : drafts_[draft].chain + 1; chain < chains_.size(); ++chain) {
    if (!chains_[chain].is_left_out && leads_to(draft, chain)) ++n;
  }
  return n;
}

std::size_t DraftTree::depth() const noexcept {
  std::size_t most = 0;
  for (const Draft& draft : drafts_) {
    if (!chains_[draft.chain].is_left_out) most = std::max(most, draft.depth + 1);
  }
  return most;
}

void DraftTree::leave_out(std::size_t chain) noexcept {
  chains_[chain].is_left_out = true;
  chains_[chain].cache.reset();
  for (std::size_t other = chain + 1; other < chains_.size(); ++other) {
    if (chains_[other].of == chain && !chains_[other].is_left_out) leave_out(other);
  }
}

void DraftTree::follow(std::size_t draft) noexcept {
  for (std::size_t chain = 0; chain < chains_.size(); ++chain) {
    if (chain == drafts_[draft].chain || leads_to(draft, chain)) continue;
    chains_[chain].is_left_out = true;
    chains_[chain].cache.reset();
  }
}

}  // namespace tessera::detail
