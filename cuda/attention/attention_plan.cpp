#include "cuda/attention/attention_plan.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace tessera::cuda {

namespace {

std::size_t class_of(std::uint64_t queries) noexcept {
  std::size_t i = 0;
  while (i + 1 < std::size(kQueryClasses) && kQueryClasses[i] < queries) ++i;
  return i;
}

std::uint32_t segments_in(const AttentionTile& tile) noexcept {
  const SegmentRange range = segments_of(tile.begin, tile.end);
  return static_cast<std::uint32_t>(range.last - range.first);
}

// Makes the tile that computes queries [first, first + n) of a run. A run is the consecutive rows of one sequence, from row `run` on. Each
// row of the run has heads.group queries; `first` counts queries from the first query of row `run`.
AttentionTile make_tile(const AttentionRows& rows, const AttentionHeads& heads, std::size_t run, std::uint64_t first,
                        std::uint64_t n) noexcept {
  AttentionTile tile{};
  tile.row = static_cast<std::uint32_t>(run + first / heads.group);
  tile.head = static_cast<std::uint32_t>(first % heads.group);
  tile.queries = static_cast<std::uint32_t>(n);
  tile.splits = 1;
  const std::size_t last_row = run + (first + n - 1) / heads.group;
  for (std::size_t row = tile.row; row <= last_row; ++row) {
    const KeyRange keys = visible_keys(rows.positions[row], heads.window, heads.ahead, heads.ahead != 0 ? rows.ends[row] : 0);
    const bool one = row == tile.row;
    tile.begin = one ? keys.begin : std::min(tile.begin, keys.begin);
    tile.end = one ? keys.end : std::max(tile.end, keys.end);
    tile.globals = std::max(tile.globals, static_cast<std::uint32_t>(global_keys(keys, heads.globals).end));
    tile.all_begin = std::max(tile.all_begin, keys.begin);
    tile.all_end = one ? keys.end : std::min(tile.all_end, keys.end);
  }
  return tile;
}

void add_run(const AttentionRows& rows, const AttentionHeads& heads, std::size_t run, std::size_t end,
             AttentionPlan& plan) {
  const std::uint64_t queries = (end - run) * std::uint64_t{heads.group};
  AttentionLaunch& launch = plan.launches[class_of(queries)];
  for (std::uint64_t first = 0; first < queries; first += launch.query_class) {
    const std::uint64_t n = std::min<std::uint64_t>(queries - first, launch.query_class);
    launch.tiles.push_back(make_tile(rows, heads, run, first, n));
  }
}

void split(const AttentionHeads& heads, const AttentionLimits& limits, std::vector<std::uint32_t>& segments,
           AttentionLaunch& launch) {
  // Tiles with many keys come first, so that no long tile is still being computed when the others are done.
  std::stable_sort(launch.tiles.begin(), launch.tiles.end(), [](const AttentionTile& a, const AttentionTile& b) {
    return a.end - a.begin > b.end - b.begin;
  });
  if (heads.globals != 0) return;
  segments.clear();
  for (const AttentionTile& tile : launch.tiles) segments.push_back(segments_in(tile));
  std::uint64_t blocks = 0;  // segments with partial results: all segments of the tiles that have more than one
  for (const std::uint32_t n : segments) blocks += n > 1 ? n : 0;
  const std::uint64_t floats = blocks * heads.kv_heads * launch.query_class * partial_floats(heads.value_dim);
  if (floats > limits.partial_floats || blocks > std::numeric_limits<std::uint32_t>::max()) return;

  std::sort(segments.begin(), segments.end(), std::greater<>());
  const std::uint32_t splits = choose_splits(segments, heads.kv_heads, limits);
  if (splits == 1) return;
  launch.splits = splits;
  launch.partial_floats = floats;
  std::uint32_t next = 0;
  for (AttentionTile& tile : launch.tiles) {
    const std::uint32_t n = segments_in(tile);
    tile.splits = std::min(splits, n);
    if (tile.splits == 1) continue;
    tile.partials = next;
    next += n;
  }
}

}  // namespace

std::uint32_t choose_splits(std::span<const std::uint32_t> segments, std::uint32_t kv_heads,
                            const AttentionLimits& limits) noexcept {
  if (segments.empty()) return 1;
  const std::uint32_t most = std::min(segments.front(), limits.max_splits);
  const std::uint64_t places = std::max<std::uint32_t>(limits.concurrent_blocks, 1);
  // Calls visit(splits, busy) for splits = 1, 2, .. most, until visit() returns true. `splits`: into how many pieces the keys of each tile
  // are split. `busy`: the share of the device that is at work if the keys are split so, which is the number of thread blocks divided by
  // the number of blocks that could run in the same number of waves (choose_splits() in attention_plan.hpp explains waves).
  const auto walk = [&](auto&& visit) {
    std::uint64_t blocks = 0;
    std::size_t longer = segments.size();  // number of tiles that have at least `splits` segments
    for (std::uint32_t splits = 1; splits <= most; ++splits) {
      while (longer > 0 && segments[longer - 1] < splits) --longer;
      blocks += longer * kv_heads;
      const std::uint64_t waves = (blocks + places - 1) / places;
      if (visit(splits, static_cast<double>(blocks) / static_cast<double>(waves * places))) return;
    }
  };
  double best = 0.0;
  walk([&](std::uint32_t, double busy) {
    best = std::max(best, busy);
    return false;
  });
  std::uint32_t chosen = 1;
  walk([&](std::uint32_t splits, double busy) {
    chosen = splits;
    return busy >= 0.85 * best;
  });
  return chosen;
}

void plan_attention(const AttentionRows& rows, const AttentionHeads& heads, const AttentionLimits& limits,
                    AttentionPlan& plan) {
  for (std::size_t i = 0; i < std::size(kQueryClasses); ++i) {
    plan.launches[i].query_class = kQueryClasses[i];
    plan.launches[i].splits = 1;
    plan.launches[i].partial_floats = 0;
    plan.launches[i].tiles.clear();
  }
  const std::size_t n = rows.sequences.size();
  for (std::size_t run = 0, end = 0; run < n; run = end) {
    for (end = run + 1; end < n && rows.sequences[end] == rows.sequences[run];) ++end;
    if (rows.sequences[run] != kNoSequence) add_run(rows, heads, run, end, plan);
  }
  for (AttentionLaunch& launch : plan.launches) split(heads, limits, plan.segments, launch);
}

}  // namespace tessera::cuda
