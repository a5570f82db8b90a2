// Arguments of the kernels that count votes: how much some rows of a step, the voters, attend to each key (backend::RowVotes).
//
// Numerics of one voter and one query head: the scores are computed as in attention. The weight of a key is exp(score - maximum) * (1 /
// sum), where `sum` is the sum of the exponentials over all visible keys. The visible keys are numbered from 0. Each of 256 threads adds up
// every 256th exponential, in ascending order. Then each warp adds the sums of its 32 threads (warp_sum()), then the sums of the eight
// warps are added, and last the sink's exponential. A key's vote is weight^2, in integer units, rounded to the nearest. A weight that is
// NaN or over 1 votes 0. Votes of heads and layers are added as integers.
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
