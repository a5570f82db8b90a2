// Attention over a job's chunks of keys (docs/numerics.md, "Attention"): scores, weights, weighted sums, and their merging.
// A product gives
//   kABytes                       of a tile of 16 rows of 32 numbers as it reads them, all parts
//   put(tile, row, a, b)          one row of such a tile: 32 numbers
//   multiply(rows, a, steps, tiles, n, depth, c, stride)
//                                 c [rows][n * 16] = the sum over steps of a[step] times tiles[step][0..n); depth: how many
//                                 numbers of all steps count
#pragma once

#include "cpu/attention_job.hpp"
#include "cpu/kernels/attention/operands.hpp"
#include "support/math_inline.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Keys of a chunk: [first, last).
struct Span {
  std::size_t first = 0, last = 0;

  [[nodiscard, gnu::always_inline]] bool empty() const { return first >= last; }
};

template <class Product, class Held>
class Attention {
 public:
  explicit Attention(const AttendJob& job) noexcept
      : job_(job), operands_{job}, queries_(job.rows * job.group), key_steps_((job.key_dim + 31) / 32),
        value_tiles_((job.value_dim + 15) / 16), value_stride_((job.value_dim + 63) / 64 * 64),
        at_(attend_scratch(queries_, job.key_dim, job.value_dim)) {}

  void run() noexcept {
    // A weight of 0 times a value that is not finite is not 0: rows that do not see the same keys go one by one.
    if (job_.rows > 1 && !edges_finite()) return run_rows();
    load_queries();
    for (std::uint64_t chunk = job_.first_chunk; chunk < job_.last_chunk; ++chunk) {
      const Span any = {visible(chunk, 0).first, visible(chunk, job_.rows - 1).last};
      if (job_.partials != nullptr) clear_sums(chunk);
      if (any.empty()) continue;
      score(chunk, any);
      load_values(chunk, any);
      for (std::size_t first = 0; first < queries_; first += 16) weigh(chunk, first);
    }
    if (job_.partials == nullptr) finish();
  }

 private:
  static constexpr std::size_t kTileBytes = Held::kParts * Operands<Held>::kTileBytes;

  [[nodiscard, gnu::always_inline]] std::byte* scratch(std::size_t at) const { return job_.scratch + at; }
  [[nodiscard, gnu::always_inline]] float* floats(std::size_t at) const {
    return reinterpret_cast<float*>(job_.scratch + at);
  }

  // What a row sees of a chunk.
  [[nodiscard, gnu::always_inline]] Span visible(std::uint64_t chunk, std::size_t row) const {
    const std::uint64_t end = job_.position + row + 1, start = chunk * kChunk;
    const std::uint64_t begin = job_.window != 0 && end > job_.window ? end - job_.window : 0;
    Span span;
    span.first = begin <= start ? 0 : begin - start < kChunk ? static_cast<std::size_t>(begin - start) : kChunk;
    span.last = end <= start ? 0 : end - start < kChunk ? static_cast<std::size_t>(end - start) : kChunk;
    return span;
  }
  [[nodiscard]] std::size_t row_of(std::size_t query) const { return query / job_.group; }

  [[nodiscard]] bool edges_finite() const {
    const std::uint64_t first_end = job_.position + 1, last_end = job_.position + job_.rows;
    if (!operands_.values_finite(first_end, last_end)) return false;
    if (job_.window == 0 || last_end <= job_.window) return true;
    return operands_.values_finite(first_end > job_.window ? first_end - job_.window : 0, last_end - job_.window);
  }

  void run_rows() noexcept {
    for (std::size_t row = 0; row < job_.rows; ++row) {
      AttendJob one = job_;
      one.rows = 1;
      one.position = job_.position + row;
      one.q = job_.q + row * job_.q_stride;
      one.out = job_.out + row * job_.out_stride;
      if (job_.partials != nullptr) one.partials = job_.partials + row * job_.group * partial_floats(job_.value_dim);
      Attention(one).run();
    }
  }

  void load_queries() noexcept {
    const std::size_t dim = job_.key_dim;
    for (std::size_t query = 0; query < (queries_ + 15) / 16 * 16; ++query) {
      const std::size_t row = row_of(query);
      const float* q = job_.q + row * job_.q_stride + (query - row * job_.group) * dim;
      std::byte* tiles = scratch(at_.q) + query / 16 * key_steps_ * Product::kABytes;
      for (std::size_t d = 0; d < dim; d += 32, tiles += Product::kABytes) {
        float values[32] = {};
        if (query < queries_) __builtin_memcpy(values, q + d, (dim - d < 32 ? dim - d : 32) * sizeof(float));
        Product::put(tiles, query % 16, load<F32x16>(values), load<F32x16>(values + 16));
      }
    }
  }

  // Products of all queries with the chunk's keys that any of them sees, 64 keys at a time.
  void score(std::uint64_t chunk, Span any) noexcept {
    auto* tiles = reinterpret_cast<Tile*>(scratch(at_.key_tiles));
    for (std::size_t from = any.first / 64 * 64; from < any.last; from += 64) {
      const std::size_t first = any.first > from ? any.first - from : 0;
      const std::size_t last = any.last - from < 64 ? any.last - from : 64;
      const std::size_t first_tile = first / 16, end_tile = (last + 15) / 16;
      for (std::size_t tile = first_tile; tile < end_tile; ++tile) {
        const std::uint64_t position = chunk * kChunk + from + tile * 16;
        prefetch_ahead(position, job_.k_offset, job_.key_dim);
        operands_.load_keys(position, scratch(at_.keys) + tile * key_steps_ * kTileBytes, tiles + tile - first_tile, 4);
        if constexpr (Held::kScales) {
          store(key_scales() + from + tile * 16, load<U32x16>(operands_.key_scales(position)));
        }
      }
      for (std::size_t query = 0; query < queries_; query += 16) {
        const std::size_t rows = queries_ - query < 16 ? queries_ - query : 16;
        const Span seen = seen_by(chunk, query, rows);
        if (seen.empty() || seen.first >= from + 64 || seen.last <= from) continue;
        Product::multiply(rows, scratch(at_.q) + query / 16 * key_steps_ * Product::kABytes, key_steps_, tiles,
                          end_tile - first_tile, job_.key_dim,
                          floats(at_.scores) + query * kChunk + from + first_tile * 16, kChunk);
      }
    }
  }

  // By any of the queries.
  [[nodiscard]] Span seen_by(std::uint64_t chunk, std::size_t query, std::size_t rows) const {
    return {visible(chunk, row_of(query)).first, visible(chunk, row_of(query + rows - 1)).last};
  }

  void load_values(std::uint64_t chunk, Span any) noexcept {
    auto* tiles = reinterpret_cast<Tile*>(scratch(at_.value_tiles));
    for (std::size_t from = any.first / kGroup * kGroup; from < any.last; from += kGroup) {
      const std::uint64_t position = chunk * kChunk + from;
      const std::size_t first = any.first > from ? any.first - from : 0;
      const std::size_t last = any.last - from < kGroup ? any.last - from : kGroup;
      prefetch_ahead(position + first, job_.v_offset, job_.value_dim);
      operands_.load_values(position, first, last, scratch(at_.values) + from / kGroup * kTileBytes, 8 * kTileBytes,
                            tiles + from / kGroup * 4);
      if constexpr (Held::kScales) {
        for (std::size_t key = first / 16 * 16; key < last; key += 16) {
          store(value_scales() + from + key, load<U32x16>(operands_.value_scales(position + key)));
        }
      }
    }
  }

  // Of the chunk, for the 16 queries from `first` on: weights, weighted sums, and those to the chunks' before.
  void weigh(std::uint64_t chunk, std::size_t first) noexcept {
    const std::size_t rows = queries_ - first < 16 ? queries_ - first : 16;
    const Span seen = seen_by(chunk, first, rows);
    if (seen.empty()) return;
    const std::size_t first_group = seen.first / kGroup, end_group = (seen.last + kGroup - 1) / kGroup;
    float maxima[16], sums[16];
    for (std::size_t row = 0; row < rows; ++row) {
      const Span span = visible(chunk, row_of(first + row));
      float* scores = floats(at_.scores) + (first + row) * kChunk;
      maxima[row] = scale_scores(scores, span);
      sums[row] = put_weights(scores, span, maxima[row], row, first_group, end_group);
    }
    const auto* tiles = reinterpret_cast<const Tile*>(scratch(at_.value_tiles));
    for (std::size_t tile = 0; tile < value_tiles_; tile += 4) {
      Product::multiply(rows, scratch(at_.weights) + first_group * Product::kABytes, end_group - first_group,
                        tiles + tile * 8 + first_group * 4, value_tiles_ - tile < 4 ? value_tiles_ - tile : 4,
                        (end_group - first_group) * kGroup, floats(at_.partial) + tile * 16, value_stride_);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      if (visible(chunk, row_of(first + row)).empty()) continue;
      const float* partial = floats(at_.partial) + row * value_stride_;
      if (job_.partials != nullptr) hand_out(chunk, first + row, partial, maxima[row], sums[row]);
      else merge(chunk, first + row, partial, maxima[row], sums[row]);
    }
  }

  // Products to scores; their maximum.
  [[nodiscard, gnu::always_inline]] float scale_scores(float* scores, Span span) const {
    const F32x16 scale = broadcast(job_.scale), least = broadcast(-__builtin_inff());
    F32x16 top = least;
    for (std::size_t key = span.first / 16 * 16; key < span.last; key += 16) {
      F32x16 score = load<F32x16>(scores + key);
      if constexpr (Held::kScales) score = score * load<F32x16>(key_scales() + key);
      score = score * scale;
      store(scores + key, score);
      if (key < span.first || key + 16 > span.last) score = as<F32x16>(select(mask_at(key, span), as<U32x16>(score), as<U32x16>(least)));
      top = larger(score, top);
    }
    return largest(top);
  }

  // exp(score - maximum), and 0 where a key is not visible, as the product reads them; their sum.
  [[nodiscard, gnu::always_inline]] float put_weights(const float* scores, Span span, float maximum, std::size_t row,
                                                      std::size_t first_group, std::size_t end_group) const {
    const F32x16 top = broadcast(maximum);
    F32x16 sum = broadcast(0.0f);
    const auto weights = [&](std::size_t key) TESSERA_LAMBDA {
      if (key + 16 <= span.first || key >= span.last) return broadcast(0.0f);
      const bool edge = key < span.first || key + 16 > span.last;
      F32x16 weight = exp_negative(load<F32x16>(scores + key) - top);
      if (edge) weight = keep(mask_at(key, span), weight);
      sum = sum + weight;
      if constexpr (Held::kScales) {
        weight = weight * load<F32x16>(value_scales() + key);
        if (edge) weight = keep(mask_at(key, span), weight);
      }
      return weight;
    };
    for (std::size_t group = first_group; group < end_group; ++group) {
      const F32x16 a = weights(group * kGroup), b = weights(group * kGroup + 16);
      Product::put(scratch(at_.weights) + group * Product::kABytes, row, a, b);
    }
    return tree_sum(sum);
  }

  TESSERA_INLINE U32x16 mask_at(std::size_t key, Span span) {
    return lanes_between(span.first > key ? span.first - key : 0, span.last - key);
  }

  // What a chunk gives, with -0 as 0: which zero a hidden key's value gives is not seen.
  TESSERA_INLINE F32x16 without_sign_of_zero(const float* partial) { return load<F32x16>(partial) + broadcast(0.0f); }

  void merge(std::uint64_t chunk, std::size_t query, const float* partial, float maximum, float sum) noexcept {
    float* total = floats(at_.total) + query * value_stride_;
    float* state = floats(at_.state) + query * 2;
    const std::uint64_t end = job_.position + row_of(query) + 1;
    const std::uint64_t begin = job_.window != 0 && end > job_.window ? end - job_.window : 0;
    if (chunk == begin / kChunk) {
      for (std::size_t d = 0; d < value_tiles_ * 16; d += 16) store(total + d, without_sign_of_zero(partial + d));
      state[0] = maximum;
      state[1] = sum;
      return;
    }
    const float merged = maximum > state[0] ? maximum : state[0];
    const float kept = math::inlined::exp(state[0] - merged), taken = math::inlined::exp(maximum - merged);
    for (std::size_t d = 0; d < value_tiles_ * 16; d += 16) {
      store(total + d, load<F32x16>(total + d) * broadcast(kept) + without_sign_of_zero(partial + d) * broadcast(taken));
    }
    state[0] = merged;
    state[1] = state[1] * kept + sum * taken;
  }

  [[nodiscard]] float* partial_of(std::uint64_t chunk, std::size_t query) const {
    return job_.partials + (chunk - job_.first_chunk) * job_.partial_stride + query * partial_floats(job_.value_dim);
  }
  void clear_sums(std::uint64_t chunk) noexcept {
    for (std::size_t query = 0; query < queries_; ++query) partial_of(chunk, query)[job_.value_dim + 1] = 0.0f;
  }
  void hand_out(std::uint64_t chunk, std::size_t query, const float* partial, float maximum, float sum) noexcept {
    float* to = partial_of(chunk, query);
    for (std::size_t d = 0; d < job_.value_dim; d += 16) {
      store_some(to + d, without_sign_of_zero(partial + d), job_.value_dim - d);
    }
    to[job_.value_dim] = maximum;
    to[job_.value_dim + 1] = sum;
  }

  void finish() noexcept {
    for (std::size_t query = 0; query < queries_; ++query) {
      const std::size_t row = row_of(query), dim = job_.value_dim;
      float* out = job_.out + row * job_.out_stride + (query - row * job_.group) * dim;
      const F32x16 sum = broadcast(floats(at_.state)[query * 2 + 1]);
      for (std::size_t d = 0; d < dim; d += 16) {
        store_some(out + d, load<F32x16>(floats(at_.total) + query * value_stride_ + d) / sum, dim - d);
      }
    }
  }

  // When a stream of few queries comes to a page, those that follow are asked for.
  void prefetch_ahead(std::uint64_t position, std::size_t offset, std::size_t dim) const {
    constexpr std::uint64_t kAhead = 128;  // tokens
    const std::uint64_t ahead = position + kAhead;
    if (queries_ > 16 || position % job_.page_tokens != 0 || ahead > job_.position) return;
    operands_.prefetch(job_.pages[ahead / job_.page_tokens] + offset, dim, job_.page_tokens);
  }

  [[nodiscard, gnu::always_inline]] float* key_scales() const { return floats(at_.scales); }
  [[nodiscard, gnu::always_inline]] float* value_scales() const { return floats(at_.scales) + kChunk; }

  const AttendJob& job_;
  Operands<Held> operands_;
  std::size_t queries_, key_steps_, value_tiles_, value_stride_;
  AttendScratch at_;
};

}  // namespace tessera::cpu::TESSERA_ISA
