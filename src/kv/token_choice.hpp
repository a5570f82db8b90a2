// Which tokens of a sequence go: a function of numbers. Of 12 tokens with these votes, of which 8 are to stay, the first
// (1 sink) and the last 2 for certain:
//
//   token    0  1  2  3  4  5  6  7  8  9 10 11
//   votes    9  0  0  5  0  0  0  2  0  0  1  0
//   pooled   -  5  5  5  5  5  2  2  2  2  -  -      the most within kPooled tokens on either side, here 2
//   stays    x  x  x  x  x  x              x  x      the 5 of the middle that have the most; among equals the later ones
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
  std::uint64_t tokens = 0;  // in all
  std::uint64_t sinks = 0;   // of them: the first ones
  std::uint64_t recent = 0;  // of them: the last ones
  std::uint64_t pooled = 0;  // neighbours on either side that a token takes the votes of: what belongs together stays together
};

// The runs that go, ascending, none next to another. `votes`: of each token; empty: the last ones stay. Where sinks and
// recent tokens are more than stay in all, the recent ones are fewer.
[[nodiscard]] std::vector<TokenRun> tokens_to_drop(std::uint64_t length, std::span<const std::uint64_t> votes, Keep keep);

}  // namespace tessera::kv
