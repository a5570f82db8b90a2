#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv_access.hpp"

namespace tessera::cuda {

// Merges the partial results of a tile whose keys were split among several thread blocks, and writes the tile's outputs. Merges segments in
// the same way and order as the kernel of a tile that is not split, so the bits are the same.
TESSERA_KERNEL(attention_merge, kAttentionThreads, AttentionMergeArgs) {
  constexpr unsigned kDims = kMostValues / kAttentionThreads;  // dimensions of a thread
  const AttentionTile tile = args.tiles[blockIdx.x];
  const std::uint32_t kv_head = blockIdx.y;
  const std::uint32_t query = blockIdx.z;
  if (tile.splits == 1 || query >= tile.queries) return;
  const std::uint64_t row = tile.row + (tile.head + query) / args.group;
  const std::uint32_t head = (tile.head + query) % args.group;
  const KeyRange visible = visible_keys(args.tables.row_position[row], args.window, args.ahead, args.ahead != 0 ? args.tables.row_end[row] : 0);
  const SegmentRange segments = segments_of(visible.begin, visible.end);

  SoftmaxState total;
  float sums[kDims] = {};
  for (std::uint64_t segment = segments.first; segment < segments.last; ++segment) {
    const float* partial =
        args.partials + partial_at(tile, segment, kv_head, query, args.kv_heads, gridDim.z, args.value_dim);
    const Merge merge = merge_into(total, {partial[args.value_dim], partial[args.value_dim + 1]});
#pragma unroll
    for (unsigned i = 0; i < kDims; ++i) {
      const unsigned d = threadIdx.x + i * kAttentionThreads;
      if (d < args.value_dim) sums[i] = merge(sums[i], partial[d]);
    }
  }
  if (args.sinks != nullptr) {
    const float keep = join_sink(total, args.sinks[kv_head * args.group + head]);
#pragma unroll
    for (unsigned i = 0; i < kDims; ++i) sums[i] = sums[i] * keep;
  }
  const float share = 1.0f / total.l;
  float* out = args.out + ((row * args.kv_heads + kv_head) * args.group + head) * args.value_dim;
#pragma unroll
  for (unsigned i = 0; i < kDims; ++i) {
    const unsigned d = threadIdx.x + i * kAttentionThreads;
    if (d < args.value_dim) out[d] = sums[i] * share;
  }
  if (args.rotates) {
    sync_block();
    if (warp_id() == 0) warp_rotate(out, args.value_dim, kv::Turn::out);
  }
}

}  // namespace tessera::cuda
