// Chooses which tokens of a sequence a token budget drops. The choice is a pure function of numbers. Example: of 12 tokens 8 are to stay. The
// first token (1 sink) and the last 2 (recent) stay in any case, so 5 of the 9 between them are chosen:
//
//   token    0  1  2  3  4  5  6  7  8  9 10 11
//   votes    9  0  0  5  0  0  0  2  0  0  1  0
//   pooled   -  5  5  5  5  5  2  2  2  2  -  -      the largest vote within Keep::pooled tokens on either side, here 2
//   stays    x  x  x  x  x  x              x  x      the middle: 5 tokens with the largest pooled votes; if equal, the later token
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::kv {

// The tokens [first, last) of a sequence.
struct TokenRun {
  std::uint64_t first = 0, last = 0;
  bool operator==(const TokenRun&) const = default;
};

struct Keep {
  std::uint64_t tokens = 0;  // how many tokens stay in all
  std::uint64_t sinks = 0;   // how many of the first tokens stay in any case
  std::uint64_t recent = 0;  // how many of the last tokens stay in any case
  // Number of neighbours on either side. A token is ranked by the largest vote among itself and these neighbours, so that words stay
  // together.
  std::uint64_t pooled = 0;
};

// Returns the runs of consecutive tokens to drop, in ascending order; the tokens between runs stay. `votes` has one number for each token.
// If it is empty, the sinks and the last tokens stay. If sinks and recent tokens together are more than keep.tokens, fewer recent tokens
// stay.
[[nodiscard]] std::vector<TokenRun> tokens_to_drop(std::uint64_t length, std::span<const std::uint64_t> votes, Keep keep);

}  // namespace tessera::kv
