// Plans one attention of a step: which tiles of queries (cuda/kernels/attention/attention.hpp) there are, and over how many thread blocks
// each tile's keys are split. The plan changes only the speed, never a bit. Pure functions, which need no device.
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

// One launch for each query class (the most queries of a tile). A run of rows of one sequence gets the smallest class that holds all its
// queries. If no class does, the run gets the largest class, as several tiles.
struct AttentionPlan {
  AttentionLaunch launches[std::size(kQueryClasses)];
  std::vector<std::uint32_t> segments;  // scratch for planning: segments of each tile of a launch
};

// Fills `plan`, which keeps its memory from step to step.
void plan_attention(const AttentionRows& rows, const AttentionHeads& heads, const AttentionLimits& limits,
                    AttentionPlan& plan);

// Returns the number of pieces into which the keys of tiles are split: the smallest number that keeps the device at least 85 % as busy as
// the best number would. The device runs limits.concurrent_blocks thread blocks at once (a wave), and is partly idle in the last wave if
// that wave is not full. `segments`: how many segments of keys each tile has, descending. No tile is split into more pieces than it has
// segments.
[[nodiscard]] std::uint32_t choose_splits(std::span<const std::uint32_t> segments, std::uint32_t kv_heads,
                                          const AttentionLimits& limits) noexcept;

}  // namespace tessera::cuda
