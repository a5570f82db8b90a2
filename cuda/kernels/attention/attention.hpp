// Attention over paged keys and values: the arguments of its kernels, and the sizes that the kernels and the plan of their launches
// (cuda/attention/attention_plan.hpp) must agree on.
//
// A thread block of the kernel attention_<codec>_d<class>_q<queries> computes one tile (blockIdx.x) for one KV head (blockIdx.y). A tile
// has queries of one sequence: up to `queries` of them, which is its query class (kQueryClasses). A query is a pair (row, query head of the
// KV head's group). A tile's queries follow each other in the order of these pairs. The thread block reads all keys that any of the queries
// sees. If the tile's keys are split among several thread blocks, each thread block reads its own part of the keys (blockIdx.z).
//
// Numerics of one query, all in f32. The kernel keeps three results of a softmax over some keys: m, the largest score; l, the sum of the
// exponentials p; o [value_dim], the sum of the keys' values, each times the key's p. The result does not depend on the tile, its query
// class, the split or the other queries:
//   score     one fma chain over the key's elements, ascending from 0, times scale
//   chunk     chunk_keys() keys, beginning at a multiple of this number. m = the larger of the segment's m so far and the maximum of the
//             chunk's visible scores; p = exp(score - m), 0 where a key is not visible; sum = the sum of p by halving (adds p that are
//             chunk / 2 apart, then chunk / 4, .. 1); corr = exp(old m - new m); l = l * corr + sum; o = o * corr, then one fma for each
//             visible key, ascending
//   segment   kSegmentKeys keys, beginning at a multiple of this number: m, l and o start afresh
//   total     segments merged left to right (Merge), from l = o = 0; out = o * (1 / l)
// With a softcap each score s becomes softcap * tanh(s / softcap). Global keys in front of a window are segments of their own, before those
// of the window. A head's sink logit `sink` joins the total at the end: m = max(m, sink), o = o * exp(old m - m), l = l * exp(old m - m) +
// exp(sink - m). If keys and values are stored rotated (kv/rotation.hpp), the query is rotated first, the stored elements are used as they
// are, and `out` is rotated back. Chunks and segments in which the query sees no key are skipped. Keys that a query does not see, pages
// that were freed, and slots that were never written do not enter the result, whatever bytes they have.
#pragma once

#include <cstdint>
#include <iterator>

#include "core/math_inline.hpp"
#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

inline constexpr std::uint32_t kAttentionThreads = 128;
inline constexpr std::uint32_t kSegmentKeys = 512;
// The head classes. Each class is a limit to the elements of a key, and has a kernel of its own, compiled for this limit. A value may have
// as many elements as a key, but at most kMostValues. The last class serves only latent attention, where a value is a part of the key; so
// this class has no kernels for codecs with a scale.
inline constexpr std::uint32_t kHeadClasses[] = {64, 128, 256, 512, 576};
inline constexpr std::uint32_t kMostValues = 512;
[[nodiscard]] constexpr std::uint32_t value_class(std::uint32_t head_class) noexcept {
  return head_class < kMostValues ? head_class : kMostValues;
}
inline constexpr std::uint32_t kQueryClasses[] = {4, 8, 16};          // a kernel for each: the most queries of a tile

// Returns the smallest class (of kHeadClasses) that is not below either dimension; 0 if there is none.
[[nodiscard]] constexpr std::uint32_t head_class(std::uint32_t key_dim, std::uint32_t value_dim) noexcept {
  for (const std::uint32_t size : kHeadClasses) {
    if (key_dim <= size && value_dim <= value_class(size)) return size;
  }
  return 0;
}

// Returns how many keys a chunk has: the keys that a thread block processes at once. (In this folder a chunk is not the 256 keys of the
// CPU's kernels.) A thread block decodes the chunk's keys to shared memory and computes their scores. Then it decodes the chunk's values to
// the same memory, where the keys are no longer needed.
[[nodiscard]] constexpr std::uint32_t chunk_keys(std::uint32_t head_class) noexcept {
  return head_class <= 128 ? 64 : head_class == 256 ? 32 : 16;
}

struct AttentionTile {
  std::uint64_t begin, end;          // keys that some query sees: [begin, end)
  std::uint64_t all_begin, all_end;  // keys that every query sees; none if all_begin >= all_end
  std::uint32_t row;                 // row of query 0
  std::uint32_t head;                // query head of query 0, within its group; query i belongs to row + (head + i) / group
  std::uint32_t queries;
  std::uint32_t splits;    // parts into which the keys are split; at most the tile's segments
  std::uint32_t partials;  // index of the tile's first segment in AttentionArgs::partials; used only if splits > 1
  std::uint32_t globals;   // number of first keys that some query sees in addition to [begin, end); such tiles are not split
};

// Arguments of one launch of an attention kernel, which computes all tiles of one query class. Grid: (tiles, kv_heads, the largest
// AttentionTile::splits of a tile); kAttentionThreads threads in a block.
struct AttentionArgs {
  KvLayer layer;
  KvTables tables;
  const AttentionTile* tiles;
  const float* q;   // [rows, kv_heads, group, key_dim]
  float* out;       // [rows, kv_heads, group, value_dim]
  float* partials;  // results of split tiles: [segments of all split tiles][kv_heads][query class][o (value_dim floats), m, l]
  std::uint64_t window;  // 0: none
  std::uint32_t group;   // query heads for each KV head
  float scale;
  const float* sinks = nullptr;  // [kv_heads, group]; nullptr: none
  float softcap = 0.0f;          // 0: none
  std::uint32_t globals = 0;     // backend::AttentionShape
  std::uint32_t ahead = 0;
  std::uint32_t padding = 0;
};

// Arguments of attention_merge, which merges the partial results of split tiles and writes `out`. Grid: (tiles, kv_heads, query class);
// kAttentionThreads threads in a block.
struct AttentionMergeArgs {
  KvTables tables;
  const AttentionTile* tiles;
  float* out;
  const float* partials;
  std::uint64_t window;
  std::uint32_t group, kv_heads, value_dim;
  std::uint32_t rotates;  // not 0: values are stored rotated (kv/rotation.hpp)
  const float* sinks = nullptr;
  std::uint32_t ahead = 0;
  std::uint32_t padding = 0;
};

struct KeyRange {
  std::uint64_t begin, end;
};

// Returns the positions of the keys that a row at `position` sees, without global keys. `window`: how many keys the row sees, its own
// included; 0: all keys up to its own. `ahead`: how many keys after its own the row sees too, but none at `text_end` or later (0 in causal
// attention).
[[nodiscard]] constexpr KeyRange visible_keys(std::uint64_t position, std::uint64_t window, std::uint32_t ahead = 0,
                                              std::uint64_t text_end = 0) noexcept {
  const std::uint64_t own = position + 1, end = ahead == 0 ? own : own + ahead < text_end ? own + ahead : text_end;
  return {window != 0 && position >= window ? position - window + 1 : 0, end};
}
// Returns the global keys that the row sees in addition to its `visible` keys. Global keys are the first `globals` keys of the sequence,
// which every row sees. Those that are in `visible` already are not returned again.
[[nodiscard]] constexpr KeyRange global_keys(const KeyRange& visible, std::uint32_t globals) noexcept {
  return {0, visible.begin < globals ? visible.begin : globals};
}

// A range of segments: [first, last). segments_of() returns the segments that contain keys of [begin, end).
struct SegmentRange {
  std::uint64_t first, last;
};
[[nodiscard]] constexpr SegmentRange segments_of(std::uint64_t begin, std::uint64_t end) noexcept {
  return {begin / kSegmentKeys, (end + kSegmentKeys - 1) / kSegmentKeys};
}
// Returns the segments that the thread block with blockIdx.z = i computes: part i of tile.splits parts.
[[nodiscard]] constexpr SegmentRange split_segments(const AttentionTile& tile, std::uint32_t i) noexcept {
  const SegmentRange all = segments_of(tile.begin, tile.end);
  const std::uint64_t n = all.last - all.first;
  return {all.first + n * i / tile.splits, all.first + n * (i + 1) / tile.splits};
}

// Returns how many floats a partial result has: o [value_dim], m and l of one query and segment.
[[nodiscard]] constexpr std::uint32_t partial_floats(std::uint32_t value_dim) noexcept { return value_dim + 2; }

// Returns the offset in AttentionArgs::partials, in floats, of the partial result of one of the tile's queries. `segment` is the segment's
// index in the sequence (position / kSegmentKeys).
[[nodiscard]] constexpr std::uint64_t partial_at(const AttentionTile& tile, std::uint64_t segment,
                                                 std::uint32_t kv_head, std::uint32_t query, std::uint32_t kv_heads,
                                                 std::uint32_t query_class, std::uint32_t value_dim) noexcept {
  const std::uint64_t block = tile.partials + (segment - tile.begin / kSegmentKeys);
  return ((block * kv_heads + kv_head) * query_class + query) * partial_floats(value_dim);
}

// The state of a softmax over some keys: m, the maximum score, and l, the sum of the exponentials. (The weighted sum o [value_dim] of the
// keys' values belongs to it too, but is stored separately.)
struct SoftmaxState {
  float m = -__builtin_inff();
  float l = 0.0f;
};

// The factors for merging a partial result (`part`) into the total: l = (total's l) * keep + (part's l) * take, and the same for o. The
// total and the part were computed with different maxima m; the factors convert both to the larger maximum.
struct Merge {
  float keep, take;

  [[nodiscard]] constexpr float operator()(float total, float part) const noexcept {
    return total * keep + part * take;
  }
};

// Merges m and l of `part` into `total`, and returns the factors for merging o. Precondition: the keys of `part` come after all keys of
// `total`, because the order of merging changes bits.
[[nodiscard]] constexpr Merge merge_into(SoftmaxState& total, const SoftmaxState& part) noexcept {
  const float m = part.m > total.m ? part.m : total.m;
  const Merge merge{math::inlined::exp(total.m - m), math::inlined::exp(part.m - m)};
  total = {m, merge(total.l, part.l)};
  return merge;
}

// Merges a sink into the total, and returns the factor by which the caller multiplies o.
[[nodiscard]] constexpr float join_sink(SoftmaxState& total, float sink) noexcept {
  const float m = sink > total.m ? sink : total.m;
  const float keep = math::inlined::exp(total.m - m);
  total = {m, total.l * keep + math::inlined::exp(sink - m)};
  return keep;
}

// The layout of a thread block's dynamic shared memory: each member is an offset or a stride, in floats. The rows of queries and weights
// are padded, so that threads that read the same column of different rows use different banks.
struct AttentionShared {
  std::uint32_t query_stride, weight_stride;
  std::uint32_t keys;     // keys of the chunk [key_dim][chunk]; after their use, the chunk's values [chunk][value class] in the same memory
  std::uint32_t queries;  // [queries][query_stride]
  std::uint32_t weights;  // [queries][weight_stride]: scores, which p replaces
  std::uint32_t corr, keep, take, sum;  // [queries]: corr of the chunk; for the last merged segment keep, take and the total's l
  // [queries], of u32: each query sees the chunk's keys [from, to); `seen` is 1 if it sees any key of the segment.
  std::uint32_t from, to, seen;
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
// Returns the bytes of a thread block's dynamic shared memory: at most 48 KB if head_class <= 128, at most 76 KB otherwise.
[[nodiscard]] constexpr std::uint32_t attention_shared_bytes(std::uint32_t head_class,
                                                             std::uint32_t query_class) noexcept {
  return attention_shared(head_class, query_class).floats * static_cast<std::uint32_t>(sizeof(float));
}

}  // namespace tessera::cuda
