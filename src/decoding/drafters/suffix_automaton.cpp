#include "decoding/drafters/suffix_automaton.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

// When a token is added, it is counted as a follower of only the kCounted longest suffixes of the sequence, because each suffix takes time.
constexpr int kCounted = 32;
// Few occurrences of a suffix say little about the next token. So a suffix of n tokens counts as if it had occurred kDoubt / n
// more times, each time with an unknown token after it. The probability of the unknown tokens remains open, and is divided among the tokens
// that followed shorter suffixes.
constexpr float kDoubt = 2.0f;
constexpr float kLeastOpen = 0.05f;  // shorter suffixes are used while more than this share of the probability is open
constexpr int kMostEdges = 64;       // only the latest edges of a state are used, at most this many

}  // namespace

void SuffixAutomaton::clear() {
  states_.assign(1, {});
  edges_.clear();
  edge_of_.clear();
  last_ = 0;
}

SuffixAutomaton::Index SuffixAutomaton::edge(Index state, Token token) const {
  const auto found = edge_of_.find(key(state, token));
  return found == edge_of_.end() ? kNone : found->second;
}

void SuffixAutomaton::add_edge(Index from, Token token, Index to) {
  const auto made = static_cast<Index>(edges_.size());
  edges_.push_back({.token = token, .to = to, .next = states_[from].first_edge, .taken = 0});
  edge_of_.emplace(key(from, token), made);
  states_[from].first_edge = made;
  if (states_[from].best_edge == kNone) states_[from].best_edge = made;
}

void SuffixAutomaton::count(Index state, Token token) {
  const Index at = edge(state, token);
  State& from = states_[state];
  ++from.taken;
  // Of several edges that were taken equally often, the edge that was taken last is the best.
  if (++edges_[at].taken >= edges_[from.best_edge].taken) from.best_edge = at;
}

void SuffixAutomaton::push(Token token) {
  const auto made = static_cast<Index>(states_.size());
  states_.push_back({.length = states_[last_].length + 1});
  Index at = last_;
  for (; at != kNone && edge(at, token) == kNone; at = states_[at].link) add_edge(at, token, made);
  if (at == kNone) {
    states_[made].link = 0;
  } else {
    const Index next = edges_[edge(at, token)].to;
    if (states_[at].length + 1 == states_[next].length) {
      states_[made].link = next;
    } else {
      // A state stands for substrings that end at the same positions. The shorter substrings of `next` now also end at the new token, but
      // its longest substring does not. So the shorter substrings get a new state, `split`.
      const auto split = static_cast<Index>(states_.size());
      states_.push_back({.length = states_[at].length + 1, .link = states_[next].link});
      const Index best = states_[next].best_edge;
      for (Index e = states_[next].first_edge; e != kNone; e = edges_[e].next) {
        const Edge copied = edges_[e];
        add_edge(split, copied.token, copied.to);
        edges_.back().taken = copied.taken;
        if (e == best) states_[split].best_edge = static_cast<Index>(edges_.size() - 1);
      }
      states_[split].taken = states_[next].taken;
      for (; at != kNone; at = states_[at].link) {
        const Index old = edge(at, token);
        if (old == kNone || edges_[old].to != next) break;
        edges_[old].to = split;
      }
      states_[next].link = states_[made].link = split;
    }
  }
  Index end = last_;
  for (int i = 0; i < kCounted && end != kNone; ++i, end = states_[end].link) count(end, token);
  last_ = made;
}

std::size_t SuffixAutomaton::guess(std::size_t shortest, float least, std::span<Token> out) const {
  Index at = states_[last_].link;  // the state of the longest suffix of the sequence that occurred before
  if (at == kNone || states_[at].length < shortest) return 0;
  float chance = 1.0f;
  for (std::size_t n = 0; n < out.size(); ++n) {
    const State& state = states_[at];
    if (state.best_edge == kNone || state.taken == 0) return n;
    const Edge& best = edges_[state.best_edge];
    chance *= static_cast<float>(best.taken) / static_cast<float>(state.taken);
    if (chance < least) return n;
    out[n] = best.token;
    at = best.to;
  }
  return out.size();
}

void SuffixAutomaton::add_followers(Index at, std::size_t shortest, const Follower& behind, std::vector<Follower>& to) const {
  const auto first = static_cast<std::ptrdiff_t>(to.size());
  float open = behind.chance;
  for (; at != kNone && states_[at].length >= shortest && open > kLeastOpen * behind.chance; at = states_[at].link) {
    const State& state = states_[at];
    if (state.taken == 0) continue;
    const float doubt = kDoubt / static_cast<float>(state.length), all = static_cast<float>(state.taken) + doubt;
    int left = kMostEdges;
    for (Index e = state.first_edge; e != kNone && left-- > 0; e = edges_[e].next) {
      const Edge& taken = edges_[e];
      if (taken.taken == 0) continue;
      const float chance = open * static_cast<float>(taken.taken) / all;
      const auto same = std::find_if(to.begin() + first, to.end(), [&](const Follower& one) { return one.token == taken.token; });
      if (same != to.end()) same->chance += chance;
      else to.push_back({.token = taken.token, .state = taken.to, .chance = chance, .parent = behind.parent});
    }
    open *= doubt / all;
  }
}

std::size_t SuffixAutomaton::guess_tree(std::size_t shortest, float least, std::size_t ends, std::span<TreeDraft> out) const {
  std::vector<Follower> open;
  // [index of a draft]: 1 if a draft follows it; the last element stands for the sequence itself.
  std::vector<std::uint8_t> has_child(out.size() + 1);
  add_followers(states_[last_].link, std::max<std::size_t>(shortest, 1), {.token = 0, .state = kNone, .chance = 1.0f}, open);
  std::size_t n = 0, found = 0;  // numbers of drafts and of leaves (ends of chains)
  while (n < out.size() && !open.empty()) {
    const auto best = std::ranges::max_element(open, {}, &Follower::chance);
    const Follower next = *best;
    *best = open.back();
    open.pop_back();
    if (next.chance < least) break;
    std::uint8_t& is_parent = has_child[next.parent == kNoDraft ? out.size() : next.parent];
    const bool is_end = is_parent != 0 || n == 0;
    if (is_end && found == ends) continue;
    found += is_end ? 1 : 0;
    is_parent = 1;
    out[n] = {.token = next.token, .parent = next.parent};
    add_followers(next.state, shortest, {.token = next.token, .state = next.state, .chance = next.chance, .parent = n++}, open);
  }
  return n;
}

}  // namespace tessera::detail
