// Chooses the tokens of a sequence that are dropped: a pure function of numbers. Example: 12 tokens, of which 8 are to stay; the first (1
// sink) and the last 2 stay in any case:
//
//   token    0  1  2  3  4  5  6  7  8  9 10 11
//   votes    9  0  0  5  0  0  0  2  0  0  1  0
//   pooled   -  5  5  5  5  5  2  2  2  2  -  -      the largest vote within Keep::pooled tokens on either side, here 2
//   stays    x  x  x  x  x  x              x  x      the 5 tokens of the middle with the largest votes; of equal ones the later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::kv {

// Tokens [first, last).
struct TokenRun {
  std::uint64_t first = 0, last = 0;
  bool operator==(const TokenRun&) const = default;
};

struct Keep {
  std::uint64_t tokens = 0;  // tokens that stay in all
  std::uint64_t sinks = 0;   // first tokens that stay
  std::uint64_t recent = 0;  // last tokens that stay
  std::uint64_t pooled = 0;  // neighbours on either side whose votes a token takes too, so that words stay together
};

// Returns the runs of tokens to drop, ascending, with tokens between them. `votes`: one number a token; empty: the last tokens stay. If
// sinks and recent tokens are more than keep.tokens, fewer recent tokens stay.
[[nodiscard]] std::vector<TokenRun> tokens_to_drop(std::uint64_t length, std::span<const std::uint64_t> votes, Keep keep);

}  // namespace tessera::kv
