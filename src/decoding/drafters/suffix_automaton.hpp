// Knows every stretch of tokens that has occurred in a sequence, and how often each token followed: a suffix automaton (Blumer et
// al. 1985), built as the tokens come. A state is a class of stretches that end at the same places. The longest stretch of a state
// is `length` tokens; its link leads to the state of its longest suffix that occurs elsewhere too.
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

  // Guesses the next tokens, writes them to `out`, and returns their number. Begins at the longest suffix of the sequence that occurred
  // before, if it has at least `shortest` tokens, and takes the token that followed most often, again and again. Stops when the product of
  // the guesses' probabilities falls below `least`, or `out` is full.
  [[nodiscard]] std::size_t guess(std::size_t shortest, float least, std::span<Token> out) const;
  // Guesses the likeliest continuations as a tree with at most `ends` leaves, and returns the number of its tokens. Counts the tokens that
  // followed the longest suffix. That suffix may have occurred only once, so its counts leave a share of the probability open. The
  // open share goes to the tokens that followed shorter suffixes.
  [[nodiscard]] std::size_t guess_tree(std::size_t shortest, float least, std::size_t ends, std::span<TreeDraft> out) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  struct State {
    std::uint32_t length = 0;
    Index link = kNone;
    Index first_edge = kNone;  // head of the list of edges
    Index best_edge = kNone;   // the edge taken most often
    std::uint32_t taken = 0;   // times that all edges together were taken
  };
  struct Edge {
    Token token;
    Index to, next;
    std::uint32_t taken;
  };

  // A token that may follow.
  struct Follower {
    Token token;
    Index state;     // the state after it
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
  Index last_ = 0;  // the state of the whole sequence
};

}  // namespace tessera::detail
