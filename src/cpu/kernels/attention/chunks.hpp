// One attention job (AttendJob), chunk by chunk of keys: scores = queries by keys; weights = exp(score - maximum); weighted sums =
// weights by values; merging with the chunks before (docs/reference/numerics.md, "Attention"). All instruction sets share this code. The
// two matrix products are done by the template parameter `Product`: on AMX's tile unit, or with vectors. The left matrix of a
// product has the queries or the weights. It consists of left tiles: 16 rows by 32 values of k (the index that is summed over: dimensions
// in scores, keys in weighted sums). The right matrix has the keys or the values. It consists of Tiles: 32 values of k by 16 lanes.
// Members of Product:
//   kABytes                       bytes of a left tile. If Product splits each number into a high and a low bf16, these are the bytes of
//                                 all high and all low parts
//   put(tile, row, a, b)          writes one row of a left tile. a: the row's numbers 0 to 15, b: numbers 16 to 31
//   multiply(rows, a, steps, tiles, n, depth, c, stride)
//                                 writes the product c [rows][n * 16]. A step is 32 values of k: it has one left tile, a[step], and n
//                                 Tiles, tiles[step][0..n). The products of all steps are added. depth: number of values of k in all
//                                 steps, without the padding of the last step. stride: floats from one row of c to the next
//   kInterleaves                  true: Product can also compute multiply() with n = 4 one Tile at a time, so that the caller can do
//                                 other work in between: start(); for each step step<0>(a, tile) to step<3>(a, tile); store(c, stride)
#pragma once

#include "cpu/attention/attention_job.hpp"
#include "cpu/kernels/attention/operands.hpp"
#include "cpu/kernels/attention/visible.hpp"
#include "cpu/kernels/rotate.hpp"
#include "cpu/kernels/simd/wide.hpp"

namespace tessera::cpu::TESSERA_ISA {

// A number from 0 to 3 as a type: the index of one of the four tiles of a step (Product::step).
template <int kPart>
struct TileIndex {};

template <class Product, class Keys, class Values = Keys>
class Attention {
 public:
  explicit Attention(const AttendJob& job) noexcept
      : job_(job), keys_(job), values_(job), queries_(job.rows * job.query_group), key_steps_((job.key_dim + 31) / 32),
        value_tiles_((job.value_dim + 15) / 16), value_stride_((job.value_dim + 63) / 64 * 64),
        at_(attend_scratch(queries_, job.key_dim, job.value_dim)),
        factor_((job.softcap != 0.0f ? job.softcap : job.scale) * kLog2E) {}

  void run() noexcept {
    // A row's hidden keys (those that it does not see) have the weight 0, but their values are multiplied if another row sees them. 0
    // times an infinite or NaN value is NaN, which would spoil the row. So if such values may exist, rows are computed one by one.
    if (job_.rows > 1 && job_.row_numbers == nullptr && !edges_finite()) return run_rows();
    load_queries();
    clear_totals();
    if (job_.states != nullptr && job_.partials == nullptr) load_totals();
    for (std::uint64_t chunk = job_.first_chunk; chunk < job_.last_chunk; ++chunk) {
      const Span any = look(chunk);
      if (job_.partials != nullptr) clear_sums(chunk);
      if (any.empty()) continue;
      if constexpr (Keys::kScales) keys_.load_key_scales(chunk, any.first, any.last, key_scales());
      if constexpr (Values::kScales) values_.load_value_scales(chunk, any.first, any.last, value_scales());
      score(chunk, any);
      if (job_.softcap != 0.0f) cap_scores(any);
      weigh(0, [](auto) {});
      if (Product::kInterleaves && queries_ <= 16 && value_tiles_ == 4) {
        add_up_stream(chunk, any);
      } else {
        load_values(chunk, any);
        for (std::size_t first = 0; first < queries_; first += 16) add_up(chunk, first);
      }
      if (job_.scores != nullptr) hand_out_scores(chunk);
    }
    if (job_.partials == nullptr) finish();
  }

 private:
  static constexpr std::size_t kTileBytes = Keys::kParts * Operands<Keys>::kTileBytes;
  static_assert(kTileBytes == Values::kParts * Operands<Values>::kTileBytes);  // one product multiplies both

  [[nodiscard, gnu::always_inline]] std::byte* scratch(std::size_t at) const { return job_.scratch + at; }
  [[nodiscard, gnu::always_inline]] float* floats(std::size_t at) const {
    return reinterpret_cast<float*>(job_.scratch + at);
  }

  [[nodiscard, gnu::always_inline]] Span* spans() const { return reinterpret_cast<Span*>(job_.scratch + at_.spans); }
  // Returns the keys of the chunk that at least one of the queries [query, query + rows) sees.
  [[nodiscard, gnu::always_inline]] Span seen_by(std::size_t query, std::size_t rows) const {
    return {spans()[query].first, spans()[query + rows - 1].last};
  }
  // Writes to spans() which keys of the chunk each query sees. Returns the keys that at least one query sees.
  [[nodiscard]] Span look(std::uint64_t chunk) const {
    Span* to = spans();
    for (std::size_t row = 0; row < job_.rows; ++row) {
      const Span span = visible(job_, chunk, row);
      for (std::size_t head = 0; head < job_.query_group; ++head) *to++ = span;
    }
    return seen_by(0, queries_);
  }

  [[nodiscard]] bool edges_finite() const {
    const std::uint64_t first_end = job_.position + 1, last_end = job_.position + job_.rows;
    if (job_.globals != 0) return values_.values_finite(global_end(job_, first_end), global_end(job_, last_end));
    if (!values_.values_finite(end_of(job_, first_end), end_of(job_, last_end))) return false;
    if (job_.window == 0 || last_end <= job_.window) return true;
    return values_.values_finite(first_end > job_.window ? first_end - job_.window : 0, last_end - job_.window);
  }

  void run_rows() noexcept {
    for (std::size_t row = 0; row < job_.rows; ++row) {
      AttendJob one = job_;
      one.rows = 1;
      one.position = job_.position + row;
      one.q = job_.q + row * job_.q_stride;
      one.out = job_.out + row * job_.out_stride;
      if (job_.states != nullptr) one.states = job_.states + row * job_.state_stride;
      if (job_.scores != nullptr) one.scores = job_.scores + row;
      if (job_.partials != nullptr) one.partials = job_.partials + row * job_.query_group * partial_floats(job_.value_dim);
      Attention(one).run();
    }
  }

  // Returns the row's index in q, out and states.
  [[nodiscard, gnu::always_inline]] std::size_t row_number(std::size_t row) const {
    return job_.row_numbers != nullptr ? job_.row_numbers[row] : row;
  }
  [[nodiscard]] float* out_of(std::size_t query) const {
    const std::size_t row = query / job_.query_group, head = query - row * job_.query_group;
    return job_.out + row_number(row) * job_.out_stride + head * job_.value_dim;
  }
  [[nodiscard]] float* state_of(std::size_t query) const {
    const std::size_t row = query / job_.query_group, head = query - row * job_.query_group;
    return job_.states + row_number(row) * job_.state_stride + head * 2;
  }

  // Returns a rotated copy of a query, in the scratch of the scores, which is not in use before scores are computed.
  [[nodiscard]] const float* rotated(const float* q) const noexcept {
    float* to = floats(at_.scores);
    __builtin_memcpy(to, q, job_.key_dim * sizeof(float));
    rotate_head(to, job_.key_dim, kv::Turn::out);
    return to;
  }

  void load_queries() noexcept {
    const std::size_t dim = job_.key_dim;
    for (std::size_t query = 0; query < (queries_ + 15) / 16 * 16; ++query) {
      std::byte* tiles = scratch(at_.q) + query / 16 * key_steps_ * Product::kABytes;
      const std::size_t row = query / job_.query_group;
      const float* q = nullptr;
      if (query < queries_) q = job_.q + row_number(row) * job_.q_stride + (query - row * job_.query_group) * dim;
      if constexpr (Keys::kRotates) q = q != nullptr ? rotated(q) : q;
      for (std::size_t d = 0; d < dim; d += 32, tiles += Product::kABytes) {
        float values[32] = {};
        if (q != nullptr && dim - d < 32) {
          for (std::size_t i = 0; i < dim - d; ++i) values[i] = q[d + i];
        }
        const float* from = q != nullptr && dim - d >= 32 ? q + d : values;
        Product::put(tiles, query % 16, load<F32x16>(from), load<F32x16>(from + 16));
      }
    }
  }

  // Multiplies all queries by the chunk's keys that any query sees, 64 keys at a time. scale_scores() later turns the products into scores.
  void score(std::uint64_t chunk, Span any) noexcept {
    auto* tiles = reinterpret_cast<Tile*>(scratch(at_.key_tiles));
    for (std::size_t from = any.first / 64 * 64; from < any.last; from += 64) {
      const std::size_t first = any.first > from ? any.first - from : 0;
      const std::size_t last = any.last - from < 64 ? any.last - from : 64;
      const std::size_t first_tile = first / 16, end_tile = (last + 15) / 16;
      for (std::size_t tile = first_tile; tile < end_tile; ++tile) {
        const std::uint64_t position = chunk * kChunk + from + tile * 16;
        keys_.load_keys(position, scratch(at_.keys) + tile * key_steps_ * kTileBytes, tiles + tile - first_tile, 4);
      }
      for (std::size_t query = 0; query < queries_; query += 16) {
        const std::size_t rows = queries_ - query < 16 ? queries_ - query : 16;
        const Span seen = seen_by(query, rows);
        if (seen.empty() || seen.first >= from + 64 || seen.last <= from) continue;
        Product::multiply(rows, scratch(at_.q) + query / 16 * key_steps_ * Product::kABytes, key_steps_, tiles,
                          end_tile - first_tile, job_.key_dim,
                          floats(at_.scores) + query * kChunk + from + first_tile * 16, kChunk);
      }
    }
  }

  // Applies the softcap (called only for models that have one): turns each product of the chunk into tanh(score / softcap). Then sets the
  // scales of the keys to 1, because the scores are already multiplied by them and scale_scores(), which runs next, would do it again.
  // Lanes of keys that are not visible may have any value.
  [[gnu::noinline]] void cap_scores(Span any) noexcept {
    const float scale = job_.scale / job_.softcap;
    for (std::size_t query = 0; query < queries_; ++query) {
      float* scores = floats(at_.scores) + query * kChunk;
      const Span span = spans()[query];
      for (std::size_t key = span.first / kWideLanes * kWideLanes; key < span.last; key += kWideLanes) {
        Wide score = load_wide(scores + key);
        if constexpr (Keys::kScales) score = score * load_wide(key_scales() + key);
        store(scores + key, math::inlined::tanh(score * scale));
      }
    }
    if constexpr (Keys::kScales) {
      for (std::size_t key = any.first / 16 * 16; key < any.last; key += 16) store(key_scales() + key, broadcast(1.0f));
    }
  }

  // Makes tiles of the values of key group `group`. Values that must be expanded are written to the scratch's place for key group `place`.
  [[gnu::always_inline]] void load_group(std::uint64_t chunk, Span any, std::size_t group, std::size_t place) noexcept {
    const std::size_t from = group * kKeyGroup;
    values_.load_values(chunk * kChunk + from, any.first > from ? any.first - from : 0,
                          any.last - from < kKeyGroup ? any.last - from : kKeyGroup,
                          scratch(at_.values) + place * value_tiles_ * kTileBytes,
                          reinterpret_cast<Tile*>(scratch(at_.value_tiles)) + group * 4);
  }
  void load_values(std::uint64_t chunk, Span any) noexcept {
    for (std::size_t group = any.first / kKeyGroup; group * kKeyGroup < any.last; ++group) {
      load_group(chunk, any, group, group);
    }
  }

  // Computes the weighted sums of at most 16 queries, in 64 dimensions. While the values of a key group are multiplied, the values of the
  // next key group are expanded.
  void add_up_stream(std::uint64_t chunk, Span any) noexcept {
    if constexpr (Product::kInterleaves) {
      const auto* tiles = reinterpret_cast<const Tile*>(scratch(at_.value_tiles));
      const std::size_t first = any.first / kKeyGroup, end = (any.last + kKeyGroup - 1) / kKeyGroup;
      load_group(chunk, any, first, first % 2);
      Product::start();
      for (std::size_t group = first; group < end; ++group) {
        if (group + 1 < end) load_group(chunk, any, group + 1, (group + 1) % 2);
        const std::byte* a = weights(0) + group * Product::kABytes;
        Product::template step<0>(a, tiles[group * 4]);
        Product::template step<1>(a, tiles[group * 4 + 1]);
        Product::template step<2>(a, tiles[group * 4 + 2]);
        Product::template step<3>(a, tiles[group * 4 + 3]);
      }
      Product::store(floats(at_.partial), value_stride_);
      if (job_.partials != nullptr) hand_out(chunk, 0, queries_);
      else merge(0, queries_);
    }
  }

  // Computes the weights of the chunk's keys for up to 16 queries, from `first` on. Calls meanwhile(TileIndex<i>) in between, which does
  // a piece of other work (a tile product), so that the CPU overlaps the two. i is 0, 1, 2, 3, 0, ... in turn. Number of calls: two for
  // each query, with the number of queries rounded up to a multiple of four; none if no query sees a key of the chunk.
  template <class Fn>
  [[gnu::always_inline]] void weigh(std::size_t first, Fn meanwhile) noexcept {
    const std::size_t rows = queries_ - first < 16 ? queries_ - first : 16;
    const Span seen = seen_by(first, rows);
    if (seen.empty()) return;
    const auto of_four = [&](std::size_t from, auto of_row) TESSERA_LAMBDA {
      for (std::size_t row = from; row < from + 4; ++row) {
        if (row < rows) of_row(row, spans()[first + row], floats(at_.scores) + (first + row) * kChunk);
        if (row % 4 == 0) meanwhile(TileIndex<0>{});
        else if (row % 4 == 1) meanwhile(TileIndex<1>{});
        else if (row % 4 == 2) meanwhile(TileIndex<2>{});
        else meanwhile(TileIndex<3>{});
      }
    };
    float *maxima = maxima_[first / 16 % 2], *sums = sums_[first / 16 % 2];
    std::byte* to = weights(first);
    const std::size_t first_group = seen.first / kKeyGroup, end_group = (seen.last + kKeyGroup - 1) / kKeyGroup;
    // The maxima of four rows are computed before their exponentials. With one row at a time, its exponentials would wait for its maximum.
    for (std::size_t from = 0; from < rows; from += 4) {
      of_four(from, [&](std::size_t row, Span span, float* scores) TESSERA_LAMBDA {
        maxima[row] = scale_scores(scores, span);
      });
      of_four(from, [&](std::size_t row, Span span, float* scores) TESSERA_LAMBDA {
        sums[row] = put_weights(scores, span, maxima[row], to, row, first_group, end_group);
      });
    }
  }
  [[nodiscard, gnu::always_inline]] std::byte* weights(std::size_t first) const {
    return scratch(at_.weights) + first / 16 % 2 * 8 * Product::kABytes;
  }

  // Computes the weighted sums of up to 16 queries, from `first` on. If the job has `partials`, writes them as the chunk's partial
  // results; otherwise merges them with the sums over the chunks before. Meanwhile computes the weights of the next 16 queries.
  void add_up(std::uint64_t chunk, std::size_t first) noexcept {
    const std::size_t rows = queries_ - first < 16 ? queries_ - first : 16;
    const Span seen = seen_by(first, rows);
    const std::size_t first_group = seen.first / kKeyGroup;
    const std::size_t groups = seen.empty() ? 0 : (seen.last + kKeyGroup - 1) / kKeyGroup - first_group;
    const std::byte* a = weights(first) + first_group * Product::kABytes;
    const auto* tiles = reinterpret_cast<const Tile*>(scratch(at_.value_tiles)) + first_group * 4;
    std::size_t tile = 0;
    if (first + 16 < queries_) {
      if constexpr (Product::kInterleaves) {
        // The tile unit multiplies while vectors compute weights. weigh() calls `part` twice for each query; a call multiplies one of the
        // four tiles of a step. With 16 queries these are 32 calls, enough for all steps (at most eight). With fewer queries the loop
        // below does the steps that are left.
        if (value_tiles_ >= 4 && groups > 0) {
          std::size_t done = 0;
          const auto part = [&]<int kPart>(TileIndex<kPart>) TESSERA_LAMBDA {
            if (done == groups) return;
            Product::template step<kPart>(a + done * Product::kABytes, tiles[done * 4 + kPart]);
            if constexpr (kPart == 3) ++done;
          };
          Product::start();
          weigh(first + 16, part);
          while (done < groups) part(TileIndex<0>{}), part(TileIndex<1>{}), part(TileIndex<2>{}), part(TileIndex<3>{});
          Product::store(floats(at_.partial), value_stride_);
          tile = 4;
        }
      }
      if (tile == 0) weigh(first + 16, [](auto) {});
    }
    if (groups == 0) return;
    for (; tile < value_tiles_; tile += 4) {
      Product::multiply(rows, a, groups, tiles + tile * 8, value_tiles_ - tile < 4 ? value_tiles_ - tile : 4,
                        groups * kKeyGroup, floats(at_.partial) + tile * 16, value_stride_);
    }
    if (job_.partials != nullptr) hand_out(chunk, first, rows);
    else merge(first, rows);
  }

  // Turns the products of one query into scores. Returns the largest score of its visible keys.
  [[nodiscard, gnu::always_inline]] float scale_scores(float* scores, Span span) const {
    const F32x16 scale = broadcast(factor_), least = broadcast(-__builtin_inff());
    F32x16 top = least;
    for (std::size_t key = span.first / 16 * 16; key < span.last; key += 16) {
      F32x16 score = load<F32x16>(scores + key);
      if constexpr (Keys::kScales) score = score * load<F32x16>(key_scales() + key);
      score = score * scale;
      store(scores + key, score);
      if (key < span.first || key + 16 > span.last) {
        score = as<F32x16>(select(mask_at(key, span), as<U32x16>(score), as<U32x16>(least)));
      }
      top = larger(score, top);
    }
    return largest(top);
  }

  // Writes a query's weights, 2^(score - maximum), in the form that the product reads; 0 for keys that are not visible. Returns their sum.
  [[nodiscard, gnu::always_inline]] float put_weights(const float* scores, Span span, float maximum, std::byte* to,
                                                      std::size_t row, std::size_t first_group,
                                                      std::size_t end_group) const {
    const F32x16 top = broadcast(maximum);
    F32x16 sum = broadcast(0.0f);
    const auto whole = [&](std::size_t key) TESSERA_LAMBDA {
      const F32x16 weight = exp2_negative(load<F32x16>(scores + key) - top);
      sum = sum + weight;
      if constexpr (Values::kScales) return weight * load<F32x16>(value_scales() + key);
      else return weight;
    };
    const auto some = [&](std::size_t key) TESSERA_LAMBDA {
      if (key + 16 <= span.first || key >= span.last) return broadcast(0.0f);
      const U32x16 mask = mask_at(key, span);
      F32x16 weight = keep(mask, exp2_negative(load<F32x16>(scores + key) - top));
      sum = sum + weight;
      if constexpr (Values::kScales) weight = keep(mask, weight * load<F32x16>(value_scales() + key));
      return weight;
    };
    for (std::size_t group = first_group; group < end_group; ++group) {
      const std::size_t key = group * kKeyGroup;
      if (span.first <= key && key + kKeyGroup <= span.last) {
        const F32x16 a = whole(key), b = whole(key + 16);
        Product::put(to + group * Product::kABytes, row, a, b);
      } else {
        const F32x16 a = some(key), b = some(key + 16);
        Product::put(to + group * Product::kABytes, row, a, b);
      }
    }
    return tree_sum(sum);
  }

  TESSERA_INLINE U32x16 mask_at(std::size_t key, Span span) {
    return lanes_between(span.first > key ? span.first - key : 0, span.last - key);
  }

  // Returns 16 numbers of a chunk's result, with each -0 replaced by 0. Otherwise the sign of a zero would depend on the values of hidden keys.
  TESSERA_INLINE F32x16 without_sign_of_zero(const float* partial) { return load<F32x16>(partial) + broadcast(0.0f); }

  void clear_totals() noexcept {
    for (std::size_t first = 0; first < queries_; first += 16) {
      float* state = floats(at_.state) + first * 2;
      store(state, broadcast(-__builtin_inff()));
      store(state + 16, broadcast(0.0f));
    }
    if (job_.partials != nullptr) return;
    // `total` is computed once, because the compiler must assume that each store changes at_.total.
    float* total = floats(at_.total);
    for (float* const end = total + queries_ * value_stride_; total < end; total += 16) store(total, broadcast(0.0f));
  }

  // Merges the chunk's result into the total of the chunks before. First both are scaled to a common maximum, the larger of the two. The
  // first chunk's result does not change: it is multiplied by 1 and added to 0.
  void merge(std::size_t first, std::size_t rows) noexcept {
    float* state = floats(at_.state) + first * 2;
    const F32x16 maximum = load<F32x16>(maxima_[first / 16 % 2]), before = load<F32x16>(state);
    const F32x16 merged = larger(maximum, before);
    float maxima[16], kept[16], taken[16];
    store(maxima, merged);
    store(kept, exp2_negative(before - merged));
    store(taken, exp2_negative(maximum - merged));
    for (std::size_t row = 0; row < rows; ++row) {
      if (spans()[first + row].empty()) continue;
      float* total = floats(at_.total) + (first + row) * value_stride_;
      const float* partial = floats(at_.partial) + row * value_stride_;
      const F32x16 keep_all = broadcast(kept[row]), take_all = broadcast(taken[row]);
      for (std::size_t d = 0; d < value_tiles_ * 16; d += 16) {
        store(total + d, load<F32x16>(total + d) * keep_all + without_sign_of_zero(partial + d) * take_all);
      }
      state[row] = maxima[row];
      state[16 + row] = state[16 + row] * kept[row] + sums_[first / 16 % 2][row] * taken[row];
    }
  }

  [[nodiscard]] float* partial_of(std::uint64_t chunk, std::size_t query) const {
    return job_.partials + (chunk - job_.first_chunk) * job_.partial_stride + query * partial_floats(job_.value_dim);
  }
  void clear_sums(std::uint64_t chunk) noexcept {
    for (std::size_t query = 0; query < queries_; ++query) partial_of(chunk, query)[job_.value_dim + 1] = 0.0f;
  }
  void hand_out(std::uint64_t chunk, std::size_t first, std::size_t rows) noexcept {
    const std::size_t dim = job_.value_dim;
    for (std::size_t row = 0; row < rows; ++row) {
      if (spans()[first + row].empty()) continue;
      float* to = partial_of(chunk, first + row);
      for (std::size_t d = 0; d < dim; d += 16) {
        store_some(to + d, without_sign_of_zero(floats(at_.partial) + row * value_stride_ + d), dim - d);
      }
      to[dim] = maxima_[first / 16 % 2][row];
      to[dim + 1] = sums_[first / 16 % 2][row];
    }
  }

  // Copies the chunk's scores of voting rows to AttendJob::scores. Must be called after all scores of the chunk have been computed.
  [[gnu::noinline]] void hand_out_scores(std::uint64_t chunk) const noexcept {
    for (std::size_t query = 0; query < queries_; ++query) {
      const std::size_t row = query / job_.query_group, head = query - row * job_.query_group;
      float* to = job_.scores[row_number(row)];
      const Span span = spans()[query];
      if (to == nullptr || span.empty()) continue;
      to += (job_.first_head + head) * job_.score_stride + chunk * kChunk;
      __builtin_memcpy(to + span.first, floats(at_.scores) + query * kChunk + span.first, (span.last - span.first) * sizeof(float));
    }
  }

  // Loads the totals that earlier jobs have left in `out` and `states`.
  void load_totals() noexcept {
    for (std::size_t query = 0; query < queries_; ++query) {
      const float *state = state_of(query), *out = out_of(query);
      if (state[1] == 0.0f) continue;
      float* to = floats(at_.state) + query / 16 * 32 + query % 16;
      to[0] = state[0];
      to[16] = state[1];
      __builtin_memcpy(floats(at_.total) + query * value_stride_, out, job_.value_dim * sizeof(float));
    }
  }
  void finish() noexcept {
    const std::size_t dim = job_.value_dim;
    for (std::size_t query = 0; query < queries_; ++query) {
      float* out = out_of(query);
      const float* total = floats(at_.total) + query * value_stride_;
      const float* state = floats(at_.state) + query / 16 * 32 + query % 16;
      if (!job_.is_last) {
        state_of(query)[0] = state[0];
        state_of(query)[1] = state[16];
        __builtin_memcpy(out, total, dim * sizeof(float));
        continue;
      }
      if (job_.sinks != nullptr) join_sink(query);
      const F32x16 sum = broadcast(state[16]);
      for (std::size_t d = 0; d < dim; d += 16) store_some(out + d, load<F32x16>(total + d) / sum, dim - d);
      if constexpr (Values::kRotates) rotate_head(out, dim, kv::Turn::out);
    }
  }

  // Adds the sink of the query's head to the total, by the same merging as one more chunk: the sink's maximum is the sink logit, its sum
  // of weights is 1, and it has no values.
  [[gnu::noinline]] void join_sink(std::size_t query) noexcept {
    float* state = floats(at_.state) + query / 16 * 32 + query % 16;
    float* total = floats(at_.total) + query * value_stride_;
    const F32x16 sink = broadcast(job_.sinks[query % job_.query_group] * kLog2E), before = broadcast(state[0]);
    const F32x16 merged = larger(sink, before), keep = exp2_negative(before - merged);
    float kept[16], taken[16];
    store(kept, keep);
    store(taken, exp2_negative(sink - merged));
    state[16] = state[16] * kept[0] + taken[0];
    for (std::size_t d = 0; d < value_tiles_ * 16; d += 16) store(total + d, load<F32x16>(total + d) * keep);
  }

  [[nodiscard, gnu::always_inline]] float* key_scales() const { return floats(at_.scales); }
  [[nodiscard, gnu::always_inline]] float* value_scales() const { return floats(at_.scales) + kChunk; }

  const AttendJob& job_;
  Operands<Keys> keys_;
  Operands<Values> values_;
  std::size_t queries_, key_steps_, value_tiles_, value_stride_;
  AttendScratch at_;
  float factor_;  // turns products, or the results of cap_scores(), into scores
  float maxima_[2][16] = {}, sums_[2][16] = {};  // largest scores and sums of weights in a chunk, of two sets of 16 queries in turn
};

}  // namespace tessera::cpu::TESSERA_ISA
