// All that has occurred in a sequence of tokens, and what followed how often: a suffix automaton (Blumer et al. 1985),
// built as the tokens come. Its states are classes of stretches that occur at the same places; the longest stretch of a
// state is `length` tokens, and its link leads to the longest of its ends that occurs elsewhere too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/decoding/drafter.hpp>

namespace tessera::detail {

class SuffixAutomaton {
 public:
  SuffixAutomaton() { clear(); }
  void clear();
  void push(Token token);

  // Walks on from the longest end of the sequence that occurred before, if it is at least `shortest` tokens: what
  // followed it most often, and what followed that. Ends where the guesses' chances, multiplied, fall below `least`, or
  // after `out` is full; how many.
  [[nodiscard]] std::size_t guess(std::size_t shortest, float least, std::span<Token> out) const;
  // The likeliest of all continuations, as a tree of at most so many ends. What the longest end's counts leave open (it may have
  // occurred once alone), those of shorter ends say.
  [[nodiscard]] std::size_t guess_tree(std::size_t shortest, float least, std::size_t ends, std::span<TreeDraft> out) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  struct State {
    std::uint32_t length = 0;
    Index link = kNone;
    Index first_edge = kNone;  // a list
    Index best_edge = kNone;   // that was taken most often
    std::uint32_t taken = 0;   // all of them together
  };
  struct Edge {
    Token token;
    Index to, next;
    std::uint32_t taken;
  };

  // What may follow.
  struct Follower {
    Token token;
    Index state;     // then
    float chance;
    std::size_t parent = kNoDraft;
  };
  void add_followers(Index state, std::size_t shortest, const Follower& behind, std::vector<Follower>& to) const;
  [[nodiscard]] static std::uint64_t key(Index state, Token token) noexcept {
    return std::uint64_t{state} << 32 | static_cast<std::uint32_t>(token);
  }
  [[nodiscard]] Index edge(Index state, Token token) const;
  void add_edge(Index from, Token token, Index to);
  void count(Index state, Token token);

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, Index> edge_of_;
  Index last_ = 0;  // the whole sequence
};

}  // namespace tessera::detail
