// Represents all substrings (consecutive tokens) of a token sequence, and how often each token followed each substring: a suffix automaton
// (Blumer et al. 1985), extended with each new token. A state stands for all substrings that end at the same positions. `length` is the
// number of tokens of the longest of these substrings. `link` is the state of that substring's longest suffix that also occurs elsewhere.
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

  // Writes guesses of the next tokens to `out`, and returns their number. Begins with the longest suffix of the sequence that occurred
  // before; returns 0 if that suffix has fewer than `shortest` tokens. Then repeatedly guesses the token that followed most often. Stops
  // when the product of the guesses' probabilities falls below `least`, or when `out` is full.
  [[nodiscard]] std::size_t guess(std::size_t shortest, float least, std::span<Token> out) const;
  // Writes the likeliest continuations to `out` as a tree with at most `ends` leaves, and returns the number of tokens in the tree. The
  // probability of a token comes from how often it followed the longest suffix of the sequence that occurred before. Because that suffix
  // may have occurred only once, some probability remains open, and is given to the tokens that followed shorter suffixes of at least
  // `shortest` tokens. Tokens whose chance is below `least` are left out.
  [[nodiscard]] std::size_t guess_tree(std::size_t shortest, float least, std::size_t ends, std::span<TreeDraft> out) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  struct State {
    std::uint32_t length = 0;
    Index link = kNone;
    Index first_edge = kNone;  // the first edge in the state's list
    Index best_edge = kNone;   // the edge that was taken most often
    std::uint32_t taken = 0;   // number of times that any edge was taken
  };
  struct Edge {
    Token token;
    Index to, next;
    std::uint32_t taken;
  };

  // A token that may be guessed next.
  struct Follower {
    Token token;
    Index state;     // the state after this token
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
  Index last_ = 0;  // the state whose longest substring is the whole sequence
};

}  // namespace tessera::detail
