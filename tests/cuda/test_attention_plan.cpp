// The plan of attention on a device, by what must hold of every plan.
#include <rapidcheck.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "catch.hpp"
#include "cuda/attention/attention_plan.hpp"

namespace test_attention_plan {

using namespace tessera::cuda;  // NOLINT

namespace {

struct Step {
  std::vector<std::uint32_t> sequences;
  std::vector<std::uint64_t> positions;
  [[nodiscard]] AttentionRows rows() const { return {sequences, positions}; }
};

rc::Gen<Step> any_step() {
  return rc::gen::exec([] {
    Step step;
    const auto runs = *rc::gen::inRange(0, 12);
    for (int i = 0; i < runs; ++i) {
      const auto length = *rc::gen::element(1, 1, 1, 2, 5, 40);
      const auto start = *rc::gen::element<std::uint64_t>(0, 15, 500, 511, 512, 5000, 100000);
      for (int j = 0; j < length; ++j) {
        step.sequences.push_back(static_cast<std::uint32_t>(i / 2 * 2));  // sometimes two runs of one sequence meet
        step.positions.push_back(start + static_cast<std::uint64_t>(j));
      }
    }
    return step;
  });
}

rc::Gen<AttentionHeads> any_heads() {
  return rc::gen::exec([] {
    return AttentionHeads{.kv_heads = *rc::gen::inRange(1u, 9u),
                          .group = *rc::gen::element(1u, 2u, 3u, 4u, 7u, 8u, 20u, 71u),
                          .value_dim = *rc::gen::element(1u, 64u, 128u),
                          .window = *rc::gen::element<std::uint64_t>(0, 0, 1, 100, 512, 4096)};
  });
}

std::uint64_t segments(const AttentionTile& tile) {
  const SegmentRange range = segments_of(tile.begin, tile.end);
  return range.last - range.first;
}

}  // namespace

TEST_CASE("a plan computes every head of every row once, over the keys that it sees") {
  CHECK(rc::check([] {
    const Step step = *any_step();
    const AttentionHeads heads = *any_heads();
    const AttentionLimits limits{*rc::gen::element(1u, 100u, 528u, 100000u),
                                 *rc::gen::element<std::uint64_t>(0, 100000, 1u << 30),
                                 *rc::gen::element(1u, 3u, 65535u)};
    AttentionPlan plan;
    plan_attention(step.rows(), heads, limits, plan);
    plan_attention(step.rows(), heads, limits, plan);  // nothing is left of a plan before

    std::map<std::pair<std::uint64_t, std::uint32_t>, int> computed;
    for (const AttentionLaunch& launch : plan.launches) {
      RC_ASSERT(launch.splits >= 1 && launch.splits <= limits.max_splits);
      RC_ASSERT(launch.partial_floats <= limits.partial_floats);
      RC_ASSERT((launch.splits > 1) == (launch.partial_floats > 0));
      std::set<std::uint64_t> partials;
      std::uint32_t most = 1;
      for (const AttentionTile& tile : launch.tiles) {
        RC_ASSERT(tile.queries >= 1 && tile.queries <= launch.query_class && tile.head < heads.group);
        std::uint64_t all_begin = 0, all_end = ~std::uint64_t{0}, begin = all_end, end = 0;
        for (std::uint32_t i = 0; i < tile.queries; ++i) {
          const std::uint64_t row = tile.row + (tile.head + i) / heads.group;
          RC_ASSERT(row < step.positions.size() && step.sequences[row] == step.sequences[tile.row]);
          ++computed[{row, (tile.head + i) % heads.group}];
          const KeyRange keys = visible_keys(step.positions[row], heads.window);
          begin = std::min(begin, keys.begin), end = std::max(end, keys.end);
          all_begin = std::max(all_begin, keys.begin), all_end = std::min(all_end, keys.end);
        }
        RC_ASSERT(tile.begin == begin && tile.end == end && tile.all_begin == all_begin && tile.all_end == all_end);

        RC_ASSERT(tile.splits >= 1 && tile.splits <= segments(tile) && tile.splits <= launch.splits);
        most = std::max(most, tile.splits);
        std::uint64_t next = begin / kSegmentKeys;  // splits follow each other, and none is empty
        for (std::uint32_t i = 0; i < tile.splits; ++i) {
          const SegmentRange part = split_segments(tile, i);
          RC_ASSERT(part.first == next && part.last > part.first);
          next = part.last;
        }
        RC_ASSERT(next == (end - 1) / kSegmentKeys + 1);
        if (tile.splits == 1) continue;
        for (std::uint64_t segment = begin / kSegmentKeys; segment < next; ++segment) {
          for (std::uint32_t head = 0; head < heads.kv_heads; ++head) {
            for (std::uint32_t i = 0; i < launch.query_class; ++i) {
              const auto at = partial_at(tile, segment, head, i, heads.kv_heads, launch.query_class, heads.value_dim);
              RC_ASSERT(at + partial_floats(heads.value_dim) <= launch.partial_floats);
              RC_ASSERT(at % partial_floats(heads.value_dim) == 0 && partials.insert(at).second);
            }
          }
        }
      }
      RC_ASSERT(most == launch.splits);
    }
    RC_ASSERT(computed.size() == step.positions.size() * heads.group);
    for (const auto& [query, times] : computed) RC_ASSERT(times == 1);
  }));
}

TEST_CASE("splits are the fewest that keep the device nearly as busy as any") {
  CHECK(rc::check([] {
    auto segments = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(1u, 60u));
    std::sort(segments.begin(), segments.end(), std::greater<>());
    const auto kv_heads = *rc::gen::inRange(1u, 9u);
    const AttentionLimits limits{*rc::gen::inRange(1u, 600u), 0, *rc::gen::element(1u, 7u, 65535u)};
    const auto busy = [&](std::uint32_t splits) {
      double blocks = 0;
      for (const std::uint32_t n : segments) blocks += std::min(n, splits) * kv_heads;
      const double waves = blocks / limits.concurrent_blocks;
      return waves / std::ceil(waves);
    };
    const std::uint32_t chosen = choose_splits(segments, kv_heads, limits);
    if (segments.empty()) {
      RC_ASSERT(chosen == 1u);
      return;
    }
    const std::uint32_t most = std::min(segments.front(), limits.max_splits);
    RC_ASSERT(chosen >= 1u && chosen <= most);
    double best = 0;
    for (std::uint32_t splits = 1; splits <= most; ++splits) best = std::max(best, busy(splits));
    constexpr double kRounding = 1e-9;
    RC_ASSERT(busy(chosen) >= 0.85 * best - kRounding);
    for (std::uint32_t splits = 1; splits < chosen; ++splits) RC_ASSERT(busy(splits) < 0.85 * best + kRounding);
  }));
}

TEST_CASE("plans of steps that are usual") {
  const AttentionLimits limits{.concurrent_blocks = 528, .partial_floats = 1u << 26};
  AttentionPlan plan;
  // One token of one long sequence: as many blocks as its segments give.
  const std::uint32_t sequence[] = {0};
  const std::uint64_t position[] = {8191};
  plan_attention({sequence, position}, {.kv_heads = 8, .group = 4, .value_dim = 128}, limits, plan);
  CHECK(plan.launches[0].tiles.size() == 1);
  CHECK(plan.launches[0].splits >= 14);
  CHECK(plan.launches[1].tiles.empty());
  CHECK(plan.launches[2].tiles.empty());
  // Without room for partials: one block a head.
  plan_attention({sequence, position}, {.kv_heads = 8, .group = 4, .value_dim = 128}, {.concurrent_blocks = 528}, plan);
  CHECK(plan.launches[0].splits == 1);
  // A group of seven heads is a tile of eight.
  plan_attention({sequence, position}, {.kv_heads = 4, .group = 7, .value_dim = 128}, limits, plan);
  CHECK(plan.launches[1].tiles.size() == 1);
  // A prompt: enough tiles without splits, the last rows first.
  Step prompt;
  for (std::uint64_t i = 0; i < 2048; ++i) prompt.sequences.push_back(0), prompt.positions.push_back(i);
  plan_attention(prompt.rows(), {.kv_heads = 8, .group = 4, .value_dim = 128}, limits, plan);
  CHECK(plan.launches[2].tiles.size() == 512);
  CHECK(plan.launches[2].splits == 1);
  CHECK(plan.launches[2].tiles.front().row == 2044);
}

}  // namespace test_attention_plan
