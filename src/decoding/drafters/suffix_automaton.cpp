#include "decoding/drafters/suffix_automaton.hpp"

namespace tessera::detail {
namespace {

// Ends of the sequence, from the longest on, for which a new token is counted. More would count what happens once only,
// and take time for each.
constexpr int kCounted = 32;

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
  // Of equally many the latest.
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
      // Some ends of the sequence occur where the longest of `next` does not: they get a state of their own.
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
  Index at = states_[last_].link;  // the longest end that occurred before
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

}  // namespace tessera::detail
