// Arguments of the kernels that count votes: how much some rows of a step attend to each key (backend::RowVotes).
//
// Numerics of one voter and query head: the scores are those of attention. A weight is exp(score - maximum), times 1 / sum. The sum has 256
// chains (number of the visible key mod 256, ascending), one for each thread. First the 32 lanes of each warp are added (warp_sum), then
// the eight warps; the sink's exponential is added last. A vote is weight^2 in units, rounded to the nearest integer. A weight that is NaN
// or over 1 votes 0. Votes of heads and layers are added as integers.
#pragma once

#include <cstdint>

#include "cuda/kernels/attention/attention.hpp"

namespace tessera::cuda {

inline constexpr unsigned kVoteThreads = 256;

// count_votes_<codec>. Grid: (voters, query heads). Dynamic shared memory: vote_shared_bytes().
struct VoteArgs {
  KvLayer layer;
  KvTables tables;
  const std::uint32_t* voters;  // [voters]: rows of the step
  const float* q;               // [rows, heads, key_dim]
  const float* sinks;           // [heads]; nullptr: none
  float* scores;                // [voters, heads, stride], scratch
  std::uint64_t* sums;          // [voters, stride]: votes of the keys, by position
  std::uint64_t window;
  std::uint32_t globals, heads, group;
  std::uint32_t stride;
  float scale, softcap;
  float units;  // the votes that a weight of 1 gives
  std::uint32_t padding;
};

[[nodiscard]] constexpr std::uint32_t vote_shared_bytes(std::uint32_t key_dim) noexcept { return key_dim * 4; }

}  // namespace tessera::cuda
