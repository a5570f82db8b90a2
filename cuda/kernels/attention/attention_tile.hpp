// The attention kernel that attention.hpp describes. A thread block goes through the chunks of its keys. To hide the time of loads, the
// loads run one half chunk ahead: while the block computes with a chunk's keys, its threads load the chunk's values into registers; while
// it computes with the values, they load the next chunk's keys. Keys and values take turns in one buffer of shared memory.
#pragma once

#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv_chunk.hpp"

namespace tessera::cuda {

template <unsigned kClass, unsigned kQueries>
struct AttentionShape {
  static constexpr unsigned kKeys = chunk_keys(kClass);
  static constexpr AttentionShared kShared = attention_shared(kClass, kQueries);

  // Sizes for scores: a thread computes kScoreQueries x kScoreKeys scores.
  static constexpr unsigned kScores = kQueries * kKeys / kAttentionThreads;
  static constexpr unsigned kScoreKeys = kScores >= 4 ? 4 : kScores >= 2 ? 2 : 1;
  static constexpr unsigned kScoreQueries = kScores > kScoreKeys ? kScores / kScoreKeys : 1;
  static constexpr unsigned kScoreColumns = kKeys / kScoreKeys;

  // Sizes for the softmax: each query has kLanes threads. Thread i takes keys i, i + kLanes, ...
  static constexpr unsigned kMostLanes = kAttentionThreads / kQueries;
  static constexpr unsigned kLanes = kMostLanes < kKeys ? kMostLanes : kKeys;
  static constexpr unsigned kLaneKeys = kKeys / kLanes;

  // Sizes for the weighted sum: a thread computes kOutDims dimensions of kOutQueries queries.
  static constexpr unsigned kValues = value_class(kClass);
  static constexpr unsigned kOutDims = kValues == 512 ? 4 : 2;
  static constexpr unsigned kOutColumns = kValues / kOutDims;
  static constexpr unsigned kOutQueries = kQueries * kOutColumns / kAttentionThreads;
  static constexpr unsigned kOutKeys = kOutQueries > 8 ? 2 : 4;  // keys at a time; registers are scarce
};

template <class Codec, unsigned kClass, unsigned kQueries>
class AttentionBlock {
  using Shape = AttentionShape<kClass, kQueries>;
  using KeyCodec = typename CodecsOf<Codec>::Key;
  using ValueCodec = typename CodecsOf<Codec>::Value;
  static constexpr unsigned kKeys = Shape::kKeys;
  static constexpr AttentionShared kShared = Shape::kShared;

 public:
  TESSERA_DEVICE explicit AttentionBlock(const AttentionArgs& args)
      : args_(args), tile_(args.tiles[blockIdx.x]), shared_(static_cast<float*>(dynamic_shared())) {}

  TESSERA_DEVICE void run() {
    if (blockIdx.z >= tile_.splits) return;
    const SegmentRange segments = split_segments(tile_, blockIdx.z);
    const std::uint64_t begin = max_of(tile_.begin, segments.first * kSegmentKeys);
    const std::uint64_t end = min_of(tile_.end, segments.last * kSegmentKeys);
    load_queries();
    // Pass 0 attends to the tile's global keys; if there are none, it is left out. Pass 1 attends to the other keys. The passes are a loop,
    // and not two calls, so that the code of attend() is compiled into the kernel only once.
    const KeyRange own = visible_;
#pragma unroll 1
    for (unsigned pass = tile_.globals == 0 ? 1 : 0; pass < 2; ++pass) {
      visible_ = pass == 0 ? global_keys(own, args_.globals) : own;
      attend(pass == 0 ? 0 : begin, pass == 0 ? tile_.globals : end);
    }
    if (tile_.splits != 1) return;
    if (args_.sinks != nullptr) join_sinks();
    write_out();
  }

 private:
  // Adds keys [begin, end) to the results of the queries that see them.
  TESSERA_DEVICE void attend(std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t sequence = args_.tables.row_sequence[tile_.row];
    const KvStream stream{args_.layer, args_.tables.pages + args_.tables.first_page[sequence], blockIdx.y, begin, end};
    KeyChunk<KeyCodec, kClass> keys;
    ValueChunk<ValueCodec, kClass> values;
    std::uint64_t chunk = begin / kKeys * kKeys;
    keys.load(stream, chunk);
#pragma unroll 1
    for (; chunk < end; chunk += kKeys) {
      const bool last = (chunk + kKeys) % kSegmentKeys == 0 || chunk + kKeys >= end;  // the last chunk of its segment
      sync_block();  // waits until all threads have read the values of the chunk before, which the keys overwrite
      keys.store(args_.layer.key_dim, shared_);
      sync_block();
      values.load(stream, chunk);
      score();
      sync_block();
      weigh(chunk, last);
      values.store(args_.layer.value_dim, shared_);
      keys.load(stream, chunk + kKeys);
      sync_block();
      add_values(chunk, end);
      if (last) finish_segment(chunk / kSegmentKeys);
    }
  }

  [[nodiscard]] TESSERA_DEVICE static std::uint64_t min_of(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }
  [[nodiscard]] TESSERA_DEVICE static std::uint64_t max_of(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
  [[nodiscard]] TESSERA_DEVICE std::uint32_t* flags(std::uint32_t at) const {
    return reinterpret_cast<std::uint32_t*>(shared_) + at;
  }
  // Returns the index of a query's head in q and out: [rows, kv_heads, group].
  [[nodiscard]] TESSERA_DEVICE std::uint64_t head_of(unsigned query) const {
    const std::uint32_t head = tile_.head + query;
    const std::uint64_t row = tile_.row + head / args_.group;
    return (row * args_.layer.kv_heads + blockIdx.y) * args_.group + head % args_.group;
  }
  [[nodiscard]] TESSERA_DEVICE float* partial_of(std::uint64_t segment, unsigned query) const {
    return args_.partials + partial_at(tile_, segment, blockIdx.y, query, args_.layer.kv_heads, kQueries,
                                       args_.layer.value_dim);
  }

  TESSERA_DEVICE void load_queries() {
    const std::uint32_t dim = args_.layer.key_dim;
#pragma unroll 1
    for (unsigned query = 0; query < kQueries; ++query) {
      float* to = shared_ + kShared.queries + query * kShared.query_stride;
      const float* from = query < tile_.queries ? args_.q + head_of(query) * dim : nullptr;
      for (unsigned d = threadIdx.x; d < dim; d += kAttentionThreads) to[d] = from == nullptr ? 0.0f : from[d];
    }
    if constexpr (KeyCodec::rotates) {
      sync_block();
      for (unsigned query = warp_id(); query < kQueries; query += kAttentionThreads / kWarp) {
        warp_rotate(shared_ + kShared.queries + query * kShared.query_stride, dim, kv::Turn::out);
      }
    }
    const unsigned query = threadIdx.x / Shape::kLanes;
    if (query < tile_.queries) {
      const std::uint32_t row = tile_.row + (tile_.head + query) / args_.group;
      const std::uint64_t text_end = args_.ahead != 0 ? args_.tables.row_end[row] : 0;
      visible_ = visible_keys(args_.tables.row_position[row], args_.window, args_.ahead, text_end);
    }
  }

  // weights[query][key] = scale * the sum over d, ascending, of query[d] * key[d].
  TESSERA_DEVICE void score() const {
    const unsigned key = threadIdx.x % Shape::kScoreColumns * Shape::kScoreKeys;
    const unsigned query = threadIdx.x / Shape::kScoreColumns * Shape::kScoreQueries;
    if (query >= kQueries) return;
    const std::uint32_t dim = args_.layer.key_dim;
    const float* queries = shared_ + kShared.queries + query * kShared.query_stride;
    float sum[Shape::kScoreQueries][Shape::kScoreKeys] = {};
    const auto step = [&](const Floats<Shape::kScoreKeys>& keys, unsigned i, float q) {
#pragma unroll
      for (unsigned j = 0; j < Shape::kScoreKeys; ++j) sum[i][j] = fma(q, keys.at[j], sum[i][j]);
    };
    const auto keys_at = [&](std::uint32_t d) {
      return *reinterpret_cast<const Floats<Shape::kScoreKeys>*>(shared_ + d * kKeys + key);
    };
    std::uint32_t d = 0;
#pragma unroll 2
    for (; d + 4 <= dim; d += 4) {
      Floats<4> q[Shape::kScoreQueries];
#pragma unroll
      for (unsigned i = 0; i < Shape::kScoreQueries; ++i) {
        q[i] = *reinterpret_cast<const Floats<4>*>(queries + i * kShared.query_stride + d);
      }
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) {
        const Floats<Shape::kScoreKeys> keys = keys_at(d + j);
#pragma unroll
        for (unsigned i = 0; i < Shape::kScoreQueries; ++i) step(keys, i, q[i].at[j]);
      }
    }
#pragma unroll 1
    for (; d < dim; ++d) {
#pragma unroll
      for (unsigned i = 0; i < Shape::kScoreQueries; ++i) step(keys_at(d), i, queries[i * kShared.query_stride + d]);
    }
#pragma unroll
    for (unsigned i = 0; i < Shape::kScoreQueries; ++i) {
      float* to = shared_ + kShared.weights + (query + i) * kShared.weight_stride + key;
#pragma unroll
      for (unsigned j = 0; j < Shape::kScoreKeys; ++j) to[j] = sum[i][j] * args_.scale;
    }
  }

  // Turns the chunk's scores into the exponentials p (attention.hpp). Merges the chunk into the state of each query's segment. After a
  // segment's last chunk, merges the segment into the total, or writes it as a partial result.
  TESSERA_DEVICE void weigh(std::uint64_t chunk, bool last) {
    const unsigned query = threadIdx.x / Shape::kLanes;
    const unsigned lane = threadIdx.x % Shape::kLanes;
    if (query >= kQueries) return;  // true for all lanes of a warp or for none, so shuffles stay complete
    const auto in_chunk = [&](std::uint64_t position) {
      return static_cast<std::uint32_t>(min_of(max_of(position, chunk) - chunk, kKeys));
    };
    const std::uint32_t from = in_chunk(visible_.begin);
    const std::uint32_t to = in_chunk(visible_.end);
    float* weights = shared_ + kShared.weights + query * kShared.weight_stride;

    float p[Shape::kLaneKeys];
    float maximum = -__builtin_inff();
#pragma unroll
    for (unsigned i = 0; i < Shape::kLaneKeys; ++i) {
      const unsigned key = lane + i * Shape::kLanes;
      p[i] = args_.softcap == 0.0f ? weights[key] : args_.softcap * math::inlined::tanh(weights[key] / args_.softcap);
      if (key >= from && key < to && p[i] > maximum) maximum = p[i];
    }
#pragma unroll
    for (unsigned distance = Shape::kLanes / 2; distance > 0; distance /= 2) {
      const float other = shuffle_xor(maximum, static_cast<int>(distance));
      maximum = other > maximum ? other : maximum;
    }
    const float merged = maximum > segment_.m ? maximum : segment_.m;
#pragma unroll
    for (unsigned i = 0; i < Shape::kLaneKeys; ++i) {
      const unsigned key = lane + i * Shape::kLanes;
      p[i] = key >= from && key < to ? math::inlined::exp(p[i] - merged) : 0.0f;
      weights[key] = p[i];
    }
#pragma unroll
    for (unsigned half = Shape::kLaneKeys / 2; half > 0; half /= 2) {
#pragma unroll
      for (unsigned i = 0; i < half; ++i) p[i] = p[i] + p[i + half];
    }
    float sum = p[0];
#pragma unroll
    for (unsigned distance = Shape::kLanes / 2; distance > 0; distance /= 2) {
      sum = sum + shuffle_xor(sum, static_cast<int>(distance));
    }
    float corr = 1.0f;
    if (from < to) {
      corr = math::inlined::exp(segment_.m - merged);
      segment_ = {merged, segment_.l * corr + sum};
    }
    if (lane == 0) {
      shared_[kShared.corr + query] = corr;
      flags(kShared.from)[query] = from;
      flags(kShared.to)[query] = to;
    }
    if (last) take_segment(chunk / kSegmentKeys, query, lane);
  }

  TESSERA_DEVICE void take_segment(std::uint64_t segment, unsigned query, unsigned lane) {
    const bool seen = visible_.begin < (segment + 1) * kSegmentKeys && visible_.end > segment * kSegmentKeys;
    if (lane == 0) flags(kShared.seen)[query] = seen ? 1 : 0;
    if (!seen) return;
    if (tile_.splits == 1) {
      const Merge merge = merge_into(total_, segment_);
      if (lane == 0) {
        shared_[kShared.keep + query] = merge.keep;
        shared_[kShared.take + query] = merge.take;
        shared_[kShared.sum + query] = total_.l;
      }
    } else if (lane == 0) {
      float* partial = partial_of(segment, query) + args_.layer.value_dim;
      partial[0] = segment_.m;
      partial[1] = segment_.l;
    }
    segment_ = {};
  }

  [[nodiscard]] TESSERA_DEVICE static unsigned out_query() {
    return threadIdx.x / Shape::kOutColumns * Shape::kOutQueries;
  }
  [[nodiscard]] TESSERA_DEVICE static unsigned out_dim() { return threadIdx.x % Shape::kOutColumns * Shape::kOutDims; }

  // Adds the chunk's values to the weighted sums: o = o * corr + the sum over keys of p times the key's value. In most chunks all queries
  // see all keys. In the other chunks, a key is added only to the queries that see the key. Adding a hidden key with p = 0 would be wrong,
  // because its value may be infinite or NaN.
  TESSERA_DEVICE void add_values(std::uint64_t chunk, std::uint64_t end) {
    const float* values = shared_ + out_dim();
    const float* weights = shared_ + kShared.weights + out_query() * kShared.weight_stride;
    std::uint32_t from[Shape::kOutQueries], to[Shape::kOutQueries];
#pragma unroll
    for (unsigned i = 0; i < Shape::kOutQueries; ++i) {
      const float corr = shared_[kShared.corr + out_query() + i];
      from[i] = flags(kShared.from)[out_query() + i];
      to[i] = flags(kShared.to)[out_query() + i];
#pragma unroll
      for (unsigned d = 0; d < Shape::kOutDims; ++d) o_[i][d] = o_[i][d] * corr;
    }
    const auto add = [&](unsigned key, auto sees) {
      Floats<Shape::kOutKeys> p[Shape::kOutQueries];
#pragma unroll
      for (unsigned i = 0; i < Shape::kOutQueries; ++i) {
        p[i] = *reinterpret_cast<const Floats<Shape::kOutKeys>*>(weights + i * kShared.weight_stride + key);
      }
#pragma unroll
      for (unsigned j = 0; j < Shape::kOutKeys; ++j) {
        const auto v = *reinterpret_cast<const Floats<Shape::kOutDims>*>(values + (key + j) * Shape::kValues);
#pragma unroll
        for (unsigned i = 0; i < Shape::kOutQueries; ++i) {
          if (!sees(i, key + j)) continue;
#pragma unroll
          for (unsigned d = 0; d < Shape::kOutDims; ++d) o_[i][d] = fma(p[i].at[j], v.at[d], o_[i][d]);
        }
      }
    };
    if (chunk >= tile_.all_begin && chunk + kKeys <= tile_.all_end) {
#pragma unroll 2
      for (unsigned key = 0; key < kKeys; key += Shape::kOutKeys) add(key, [](unsigned, unsigned) { return true; });
    } else {
      const auto keys = static_cast<unsigned>(min_of(end - chunk, kKeys));
      const auto sees = [&](unsigned i, unsigned key) { return key >= from[i] && key < to[i]; };
#pragma unroll 1
      for (unsigned key = 0; key < keys; key += Shape::kOutKeys) add(key, sees);
    }
  }

  TESSERA_DEVICE void finish_segment(std::uint64_t segment) {
    const std::uint32_t dim = args_.layer.value_dim;
    float* partial = tile_.splits == 1 ? nullptr : partial_of(segment, out_query()) + out_dim();
#pragma unroll
    for (unsigned i = 0; i < Shape::kOutQueries; ++i) {
      const unsigned query = out_query() + i;
      if (flags(kShared.seen)[query] == 0) continue;
      const Merge merge{shared_[kShared.keep + query], shared_[kShared.take + query]};
#pragma unroll
      for (unsigned d = 0; d < Shape::kOutDims; ++d) {
        if (partial == nullptr) total_o_[i][d] = merge(total_o_[i][d], o_[i][d]);
        else if (out_dim() + d < dim) partial[i * partial_floats(dim) + d] = o_[i][d];
        o_[i][d] = 0.0f;
      }
    }
  }

  TESSERA_DEVICE void join_sinks() {
    const unsigned query = threadIdx.x / Shape::kLanes;
    sync_block();  // waits until all threads have read `keep` of the last segment
    if (query < tile_.queries && threadIdx.x % Shape::kLanes == 0) {
      shared_[kShared.keep + query] = join_sink(total_, args_.sinks[blockIdx.y * args_.group + (tile_.head + query) % args_.group]);
      shared_[kShared.sum + query] = total_.l;
    }
    sync_block();
  }

  TESSERA_DEVICE void write_out() const {
    const std::uint32_t dim = args_.layer.value_dim;
    float* to = args_.out + head_of(out_query()) * dim + out_dim();
    std::uint32_t head = (tile_.head + out_query()) % args_.group;
#pragma unroll
    for (unsigned i = 0; i < Shape::kOutQueries; ++i) {
      const unsigned query = out_query() + i;
      if (query < tile_.queries) {
        const float share = 1.0f / shared_[kShared.sum + query];
#pragma unroll
        for (unsigned d = 0; d < Shape::kOutDims; ++d) {
          if (out_dim() + d >= dim) continue;
          const float sum = args_.sinks != nullptr ? total_o_[i][d] * shared_[kShared.keep + query] : total_o_[i][d];
          to[d] = sum * share;
        }
      }
      to += dim;
      if (++head == args_.group) {  // the next query belongs to the next row: skips the query groups of the other KV heads
        head = 0;
        to += std::uint64_t{args_.layer.kv_heads - 1} * args_.group * dim;
      }
    }
    if constexpr (ValueCodec::rotates) {
      sync_block();
      for (unsigned query = warp_id(); query < tile_.queries; query += kAttentionThreads / kWarp) {
        warp_rotate(args_.out + head_of(query) * dim, dim, kv::Turn::out);
      }
    }
  }

  const AttentionArgs& args_;
  const AttentionTile tile_;
  float* const shared_;
  // The keys visible to the query whose softmax this thread computes. Empty if the thread has no query.
  KeyRange visible_ = {0, 0};
  SoftmaxState segment_, total_;
  // Weighted sums of the queries and dimensions that this thread adds up, for the segment and for all segments.
  float o_[Shape::kOutQueries][Shape::kOutDims] = {};
  float total_o_[Shape::kOutQueries][Shape::kOutDims] = {};
};

// Defines the kernels of a codec: one for each head class and each class of queries.
#define TESSERA_ATTENTION_KERNEL(name, Codec, head_class, queries)                                  \
  TESSERA_KERNEL(attention_##name##_d##head_class##_q##queries, kAttentionThreads, AttentionArgs) { \
    AttentionBlock<Codec, head_class, queries>(args).run();                                         \
  }
#define TESSERA_ATTENTION_CLASS(name, Codec, head_class) \
  TESSERA_ATTENTION_KERNEL(name, Codec, head_class, 4)   \
  TESSERA_ATTENTION_KERNEL(name, Codec, head_class, 8)   \
  TESSERA_ATTENTION_KERNEL(name, Codec, head_class, 16)
#define TESSERA_LATENT_ATTENTION(name, Codec) TESSERA_ATTENTION_CLASS(name, Codec, 576)
#define TESSERA_ATTENTION_KERNELS(name, Codec) \
  TESSERA_ATTENTION_CLASS(name, Codec, 64)     \
  TESSERA_ATTENTION_CLASS(name, Codec, 128)    \
  TESSERA_ATTENTION_CLASS(name, Codec, 256)    \
  TESSERA_ATTENTION_CLASS(name, Codec, 512)

}  // namespace tessera::cuda
