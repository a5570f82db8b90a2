// Attention over paged keys and values: what its kernels take, and the sizes that they and the plan
// (cuda/attention_plan.hpp) agree on.
//
// A block of attention_<codec>_d<class>_q<queries> computes one tile: up to `queries` queries, which are consecutive
// (row, head of one KV head's group) of rows of one sequence, against the keys that any of them sees, of one KV head
// (blockIdx.y) and one of the tile's splits of the key length (blockIdx.z).
//
// Numerics, all in f32, of one query; nothing depends on the tile, its class of queries, the split or the neighbours:
//   score     one fma chain over the key's elements, ascending from 0, times scale
//   chunk     chunk_keys() keys at absolute positions: the maximum of its visible scores, merged into the segment's
//             m; p = exp(score - m), 0 where a key is not visible; the sum of p by halving (distances chunk / 2 .. 1);
//             l = l * corr + sum; o = o * corr, then one fma a visible key, ascending
//   segment   kSegmentKeys keys at absolute positions: m, l and o start afresh
//   total     segments merged left to right (Merge), from l = o = 0; out = o * (1 / l)
// Of types that are held rotated (kv/rotation.hpp) the query is rotated before, the elements are read as they are held,
// and `out` is rotated back.
// Chunks and segments without a visible key are left out. Keys that a query does not see, pages that were given back
// and slots that nothing was written to never enter its result, whatever they hold.
#pragma once

#include <cstdint>
#include <iterator>

#include "core/math_inline.hpp"
#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

inline constexpr std::uint32_t kAttentionThreads = 128;
inline constexpr std::uint32_t kSegmentKeys = 512;
inline constexpr std::uint32_t kHeadClasses[] = {64, 128, 256, 512};
inline constexpr std::uint32_t kQueryClasses[] = {4, 8, 16};

// The least class that holds both dimensions; 0: none does.
[[nodiscard]] constexpr std::uint32_t head_class(std::uint32_t key_dim, std::uint32_t value_dim) noexcept {
  for (const std::uint32_t size : kHeadClasses) {
    if (key_dim <= size && value_dim <= size) return size;
  }
  return 0;
}

// Keys of a chunk, which is decoded at once.
[[nodiscard]] constexpr std::uint32_t chunk_keys(std::uint32_t head_class) noexcept {
  return head_class <= 128 ? 64 : head_class == 256 ? 32 : 16;
}

struct AttentionTile {
  std::uint64_t begin, end;          // keys that some query sees: [begin, end)
  std::uint64_t all_begin, all_end;  // keys that every query sees; none if all_begin >= all_end
  std::uint32_t row;                 // of query 0
  std::uint32_t head;                // of query 0, in the group; query i is of row + (head + i) / group
  std::uint32_t queries;
  std::uint32_t splits;    // at most its segments
  std::uint32_t partials;  // its first segment's number among the segments of all split tiles
  std::uint32_t padding;
};

// Tiles of one class of queries. Grid: (tiles, kv_heads, the largest number of splits), kAttentionThreads.
struct AttentionArgs {
  KvLayer layer;
  KvTables tables;
  const AttentionTile* tiles;
  const float* q;   // [rows, kv_heads, group, key_dim]
  float* out;       // [rows, kv_heads, group, value_dim]
  float* partials;  // of split tiles, [segments of all, kv_heads, queries of the class][value_dim of o, m, l]
  std::uint64_t window;  // 0: none
  std::uint32_t group;   // query heads a KV head
  float scale;
};

// attention_merge: the partials of split tiles, into `out`. Grid: (tiles, kv_heads, queries of the class),
// kAttentionThreads.
struct AttentionMergeArgs {
  KvTables tables;
  const AttentionTile* tiles;
  float* out;
  const float* partials;
  std::uint64_t window;
  std::uint32_t group, kv_heads, value_dim;
  std::uint32_t rotates;  // not 0: what is held is rotated (kv/rotation.hpp)
};

struct KeyRange {
  std::uint64_t begin, end;
};

// What a row sees.
[[nodiscard]] constexpr KeyRange visible_keys(std::uint64_t position, std::uint64_t window) noexcept {
  return {window != 0 && position >= window ? position - window + 1 : 0, position + 1};
}

// Segments that hold keys of [begin, end): [first, last).
struct SegmentRange {
  std::uint64_t first, last;
};
[[nodiscard]] constexpr SegmentRange segments_of(std::uint64_t begin, std::uint64_t end) noexcept {
  return {begin / kSegmentKeys, (end + kSegmentKeys - 1) / kSegmentKeys};
}
// A tile's segments that its split i computes.
[[nodiscard]] constexpr SegmentRange split_segments(const AttentionTile& tile, std::uint32_t i) noexcept {
  const SegmentRange all = segments_of(tile.begin, tile.end);
  const std::uint64_t n = all.last - all.first;
  return {all.first + n * i / tile.splits, all.first + n * (i + 1) / tile.splits};
}

// Floats of one query's partial: o, m, l.
[[nodiscard]] constexpr std::uint32_t partial_floats(std::uint32_t value_dim) noexcept { return value_dim + 2; }

// Where the partial of query i of a tile lies, in floats; `segment` as numbered by segments_of.
[[nodiscard]] constexpr std::uint64_t partial_at(const AttentionTile& tile, std::uint64_t segment,
                                                 std::uint32_t kv_head, std::uint32_t query, std::uint32_t kv_heads,
                                                 std::uint32_t query_class, std::uint32_t value_dim) noexcept {
  const std::uint64_t block = tile.partials + (segment - tile.begin / kSegmentKeys);
  return ((block * kv_heads + kv_head) * query_class + query) * partial_floats(value_dim);
}

// The maximum and the sum of a softmax over some keys. Its weighted sum of values goes along: [value_dim].
struct SoftmaxState {
  float m = -__builtin_inff();
  float l = 0.0f;
};

// What two states' sums are multiplied by before they are added: both taken to the larger maximum.
struct Merge {
  float keep, take;

  [[nodiscard]] constexpr float operator()(float total, float part) const noexcept {
    return total * keep + part * take;
  }
};

// Takes `part`, which comes after all that `total` holds, into `total`.
[[nodiscard]] constexpr Merge merge_into(SoftmaxState& total, const SoftmaxState& part) noexcept {
  const float m = part.m > total.m ? part.m : total.m;
  const Merge merge{math::inlined::exp(total.m - m), math::inlined::exp(part.m - m)};
  total = {m, merge(total.l, part.l)};
  return merge;
}

// How a block lays out its dynamic shared memory, in floats. Rows are padded, so that lanes which read different rows
// of queries or weights meet different banks.
struct AttentionShared {
  std::uint32_t query_stride, weight_stride;
  std::uint32_t keys;     // [key_dim][chunk], then values [chunk][class]
  std::uint32_t queries;  // [queries][query_stride]
  std::uint32_t weights;  // [queries][weight_stride]: scores, then p
  std::uint32_t corr, keep, take, sum;  // [queries]
  std::uint32_t from, to, seen;         // [queries], of u32
  std::uint32_t floats;
};
[[nodiscard]] constexpr AttentionShared attention_shared(std::uint32_t head_class, std::uint32_t query_class) noexcept {
  AttentionShared s{};
  s.query_stride = head_class + 4;
  s.weight_stride = chunk_keys(head_class) + 8;
  s.queries = head_class * chunk_keys(head_class);
  s.weights = s.queries + query_class * s.query_stride;
  s.corr = s.weights + query_class * s.weight_stride;
  s.keep = s.corr + query_class;
  s.take = s.keep + query_class;
  s.sum = s.take + query_class;
  s.from = s.sum + query_class;
  s.to = s.from + query_class;
  s.seen = s.to + query_class;
  s.floats = s.seen + query_class;
  return s;
}
// Dynamic shared memory of a block: at most 48 KB up to class 128, 69 KB for 512.
[[nodiscard]] constexpr std::uint32_t attention_shared_bytes(std::uint32_t head_class,
                                                             std::uint32_t query_class) noexcept {
  return attention_shared(head_class, query_class).floats * static_cast<std::uint32_t>(sizeof(float));
}

}  // namespace tessera::cuda
