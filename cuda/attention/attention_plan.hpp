// Plans one attention of a step: divides its queries into tiles (cuda/kernels/attention/attention.hpp), and decides among how many thread
// blocks the keys of each tile are split. The plan changes only the speed, never a bit of the results. The functions are pure and need no
// device.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "cuda/kernels/attention/attention.hpp"

namespace tessera::cuda {

// The sequence and the position of each row of a step.
struct AttentionRows {
  std::span<const std::uint32_t> sequences;
  std::span<const std::uint64_t> positions;
  std::span<const std::uint64_t> ends = {};  // ends of the rows' texts; read only if rows see keys ahead
};

struct AttentionHeads {
  std::uint32_t kv_heads = 1;
  std::uint32_t group = 1;  // query heads for each KV head
  std::uint32_t value_dim = 0;
  std::uint64_t window = 0;  // 0: none
  std::uint32_t globals = 0;  // as in backend::AttentionShape
  std::uint32_t ahead = 0;

  bool operator==(const AttentionHeads&) const noexcept = default;
};

struct AttentionLimits {
  std::uint32_t concurrent_blocks = 1;  // blocks that the device runs at once: its SMs times the blocks of an SM
  std::uint64_t partial_floats = 0;     // room for the partial results of one launch, in floats
  std::uint32_t max_splits = 65535;     // the most parts into which a tile's keys may be split: CUDA's limit of grid.z
};

// One launch of the kernel attention_<codec>_d<class>_q<query_class>. If `splits` is over 1, a launch of attention_merge follows.
struct AttentionLaunch {
  std::uint32_t query_class = 0;
  std::uint32_t splits = 1;          // the most parts of a tile
  std::uint64_t partial_floats = 0;  // floats that the partial results of the launch take
  std::vector<AttentionTile> tiles;  // tiles with most keys first; empty: no launch
};

// The plan: one launch for each query class. (The query class is the most queries that a tile of the launch can have.) If all queries of a
// run of rows of one sequence fit one tile, the run gets the smallest class that holds them. If not, the run is cut into several tiles of
// the largest class.
struct AttentionPlan {
  AttentionLaunch launches[std::size(kQueryClasses)];
  std::vector<std::uint32_t> segments;  // scratch for planning: segments of each tile of a launch
};

// Fills `plan`, which keeps its memory from step to step.
void plan_attention(const AttentionRows& rows, const AttentionHeads& heads, const AttentionLimits& limits,
                    AttentionPlan& plan);

// Returns the number of pieces into which the keys of each tile are split, so that most of the device is at work. The device runs
// limits.concurrent_blocks thread blocks at once (a wave). If the last wave is not full, a part of the device is idle. The function finds
// the number of pieces that keeps the device busiest, and returns the smallest number with which the device is at least 85 % as busy.
// `segments`: how many segments of keys each tile has, descending. A tile with fewer segments than pieces gets one piece for each segment.
[[nodiscard]] std::uint32_t choose_splits(std::span<const std::uint32_t> segments, std::uint32_t kv_heads,
                                          const AttentionLimits& limits) noexcept;

}  // namespace tessera::cuda
