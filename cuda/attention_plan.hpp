// How one attention of a step becomes blocks: tiles of queries (cuda/kernels/attention.hpp), and over how many blocks
// each tile's keys are split. Only speed depends on it. Pure functions, no device.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "cuda/kernels/attention.hpp"

namespace tessera::cuda {

// A step's rows, as KvTables has them.
struct AttentionRows {
  std::span<const std::uint32_t> sequences;
  std::span<const std::uint64_t> positions;
};

struct AttentionHeads {
  std::uint32_t kv_heads = 1;
  std::uint32_t group = 1;  // query heads a KV head
  std::uint32_t value_dim = 0;
  std::uint64_t window = 0;  // 0: none

  bool operator==(const AttentionHeads&) const noexcept = default;
};

struct AttentionLimits {
  std::uint32_t concurrent_blocks = 1;  // that the device runs at once: its SMs times the blocks that one holds
  std::uint64_t partial_floats = 0;     // room for the partials of one launch
  std::uint32_t max_splits = 65535;     // grid.z
};

// One launch of attention_<codec>_d<class>_q<query_class>; where `splits` is over 1, attention_merge follows.
struct AttentionLaunch {
  std::uint32_t query_class = 0;
  std::uint32_t splits = 1;          // of the tile that has most
  std::uint64_t partial_floats = 0;  // that it uses
  std::vector<AttentionTile> tiles;  // those with most keys first; none: no launch
};

// A launch for each class of queries: a run of rows of one sequence takes the least class that holds it, else the
// largest.
struct AttentionPlan {
  AttentionLaunch launches[std::size(kQueryClasses)];
  std::vector<std::uint32_t> segments;  // of the tiles of one launch, while planning
};

// `plan` keeps its memory from step to step.
void plan_attention(const AttentionRows& rows, const AttentionHeads& heads, const AttentionLimits& limits,
                    AttentionPlan& plan);

// The smallest number of splits with which the last wave of blocks leaves the device nearly as busy as with any: within
// 85 % of the best share. `segments` of each tile, descending; no tile is split finer than that.
[[nodiscard]] std::uint32_t choose_splits(std::span<const std::uint32_t> segments, std::uint32_t kv_heads,
                                          const AttentionLimits& limits) noexcept;

}  // namespace tessera::cuda
