#include "cpu/attention/reference_attention.hpp"

#include <algorithm>
#include <limits>

#include "core/math_inline.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/vector.hpp"
#include "kv/block.hpp"

namespace tessera::cpu {

namespace {

// 32 keys as f32: dimension d of key j is data[d * stride + j].
struct Keys {
  const float* data;
  std::size_t stride;
};

// Returns the 32 keys from `position` on, as f32 [key_dim][stride]. Only keys [first, last) of the 32 are valid; the others may have any
// value. If the pages have F32 in this layout, returns a pointer into a page; otherwise decodes the keys to `scratch`.
Keys load_keys(const KvLayerView& kv, std::size_t head, std::uint64_t position, std::size_t first, std::size_t last,
               float* scratch) noexcept {
  const std::size_t page_tokens = kv.page_tokens;
  const std::size_t dim = kv.layout->shape.key_dim;
  if (kv.dtype == DType::f32 && page_tokens >= kKeyGroup) {  // K can be read in place
    return {reinterpret_cast<const float*>(kv.k_block(head, kv.page_of(position))) + kv.slot_of(position), page_tokens};
  }
  kv::visit(kv.dtype, kv::KeyOrValue::key, [&]<class C>(std::type_identity<C>) {
    if (page_tokens >= kKeyGroup) {
      kv::decode_keys<C, kKeyGroup>(kv.k_block(head, kv.page_of(position)), page_tokens, dim, kv.slot_of(position), scratch,
                                 kKeyGroup);
      return;
    }
    for (std::size_t j = first / 16 * 16; j < last; j += 16) {  // 16 keys at a time, since pages may have only 16
      kv::decode_keys<C, 16>(kv.k_block(head, kv.page_of(position + j)), page_tokens, dim, 0, scratch + j, kKeyGroup);
    }
  });
  return {scratch, kKeyGroup};
}

// Returns the values of the 32 keys from `position` on, as f32 [key][value_dim]. Only the values of keys [first, last) of the 32 are valid.
const float* load_values(const KvLayerView& kv, std::size_t head, std::uint64_t position, std::size_t first,
                         std::size_t last, float* scratch) noexcept {
  const std::size_t page_tokens = kv.page_tokens;
  const std::size_t dim = kv.layout->shape.value_dim;
  const bool in_keys = kv.layout->shape.values == kv::Values::in_keys;
  if (kv.dtype == DType::f32 && page_tokens >= kKeyGroup && !in_keys) {
    const std::byte* block = kv.v_block(head, kv.page_of(position));
    return reinterpret_cast<const float*>(block) + kv.slot_of(position) * dim;
  }
  if (in_keys) {
    kv::visit(kv.dtype, kv::KeyOrValue::value, [&]<class C>(std::type_identity<C>) {
      for (std::size_t j = first; j < last; ++j) {
        kv::decode_last_of_key<C>(kv.v_block(head, kv.page_of(position + j)), page_tokens, dim, kv.slot_of(position + j),
                                  scratch + j * dim);
      }
    });
    return scratch;
  }
  const std::size_t step = std::min(page_tokens, kKeyGroup);
  kv::visit(kv.dtype, kv::KeyOrValue::value, [&]<class C>(std::type_identity<C>) {
    for (std::size_t page = first / step * step; page < last; page += step) {
      const std::size_t from = std::max(first, page), to = std::min(last, page + step);
      kv::decode_values<C>(kv.v_block(head, kv.page_of(position + page)), page_tokens, dim, kv.slot_of(position + from),
                           to - from, scratch + from * dim);
    }
  });
  return scratch;
}

// Sets s[j] = scale * (sum over d, ascending, of q[d] * k[d][j]) for 32 keys: eight independent chains of four lanes.
void score(const float* q, std::size_t dim, Keys keys, float scale, float* s) noexcept {
  Vec4 sum[kKeyGroup / 4] = {};
  for (std::size_t d = 0; d < dim; ++d) {
    const Vec4 broadcast = {q[d], q[d], q[d], q[d]};
    const float* row = keys.data + d * keys.stride;
    for (std::size_t i = 0; i < kKeyGroup / 4; ++i) sum[i] = sum[i] + broadcast * load4(row + 4 * i);
  }
  for (std::size_t i = 0; i < kKeyGroup / 4; ++i) store4(s + 4 * i, sum[i] * Vec4{scale, scale, scale, scale});
}

void cap(float* scores, std::size_t first, std::size_t last, float softcap) noexcept {
  for (std::size_t j = first; j < last; ++j) scores[j] = softcap * math::inlined::tanh(scores[j] / softcap);
}

// Turns a chunk's scores into weights exp(s - maximum), 0 where a key is not visible. Returns the sum of the weights.
float exponentials(float* s, std::size_t first, std::size_t last, float maximum) noexcept {
  std::fill(s, s + first, 0.0f);
  for (std::size_t j = first; j < last; ++j) s[j] = math::inlined::exp(s[j] - maximum);
  std::fill(s + last, s + kChunk, 0.0f);
  float lanes[16] = {};
  for (std::size_t j = 0; j < kChunk; j += 16) {
    for (std::size_t i = 0; i < 16; ++i) lanes[i] += s[j + i];
  }
  return tree_sum(lanes);
}

// The working memory of attend_reference(), cut from one task's scratch.
struct Scratch {
  Scratch(float* at, std::size_t group, std::size_t key_dim, std::size_t value_dim) noexcept
      : keys(at), values(keys + kKeyGroup * key_dim), weights(values + kKeyGroup * value_dim),
        partial(weights + group * kChunk), chunk_max(partial + group * value_dim), chunk_sum(chunk_max + group),
        max(chunk_sum + group), sum(max + group) {}

  float* keys;       // [key_dim][32], if K must be decoded
  float* values;     // [32][value_dim], if V must be decoded
  float* weights;    // [group][256]: scores, then exp(score - chunk_max)
  float* partial;    // [group][value_dim]: the chunk's weighted sum of values
  float* chunk_max;  // [group]
  float* chunk_sum;  // [group]
  float* max;        // [group]: largest score of all chunks so far
  float* sum;        // [group]: sum of the weights of all chunks so far
};

// Merges a chunk's partial result into the total of the chunks before it, both scaled to the larger of the two maxima.
void merge(const Scratch& s, std::size_t head, std::size_t dim, float* total) noexcept {
  const float* partial = s.partial + head * dim;
  const float merged = s.chunk_max[head] > s.max[head] ? s.chunk_max[head] : s.max[head];
  const float keep = math::inlined::exp(s.max[head] - merged);
  const float take = math::inlined::exp(s.chunk_max[head] - merged);
  for (std::size_t d = 0; d < dim; ++d) total[d] = total[d] * keep + partial[d] * take;
  s.sum[head] = s.sum[head] * keep + s.chunk_sum[head] * take;
  s.max[head] = merged;
}

// Merges a sink into the total. A sink has a weight but no value, so it only makes the sum of the weights larger.
void join_sink(const Scratch& s, std::size_t head, std::size_t dim, float sink, float* total) noexcept {
  const float merged = sink > s.max[head] ? sink : s.max[head];
  const float keep = math::inlined::exp(s.max[head] - merged);
  for (std::size_t d = 0; d < dim; ++d) total[d] *= keep;
  s.sum[head] = s.sum[head] * keep + math::inlined::exp(sink - merged);
}

}  // namespace

void attend_reference(const KvView& kv, const backend::AttentionShape& shape, std::size_t kv_head, std::uint64_t position,
            std::uint64_t seen_end, const float* q, float* out, float* scratch, const ScoresOf& scores) noexcept {
  const KvLayerView layer = kv.layer(shape.layer);
  const KvLayerShape& dims = layer.layout->shape;
  const std::size_t group = shape.n_heads / dims.kv_heads;
  const std::size_t key_dim = dims.key_dim;
  const std::size_t value_dim = dims.value_dim;
  const Scratch s(scratch, group, key_dim, value_dim);

  const std::uint64_t own = shape.window != 0 && position >= shape.window ? position - shape.window + 1 : 0;  // the first key of the window
  bool is_first = true;
  const auto attend_to = [&](std::uint64_t begin, std::uint64_t end) {  // keys [begin, end), chunk by chunk
    for (std::uint64_t chunk = begin / kChunk * kChunk; chunk < end; chunk += kChunk) {
      const std::size_t first = begin > chunk ? static_cast<std::size_t>(begin - chunk) : 0;  // visible keys of the chunk
      const std::size_t last = static_cast<std::size_t>(std::min<std::uint64_t>(end - chunk, kChunk));
      const std::size_t first_group = first / kKeyGroup * kKeyGroup;

      for (std::size_t g = first_group; g < last; g += kKeyGroup) {
        const std::size_t from = std::max(first, g) - g;
        const std::size_t to = std::min(last, g + kKeyGroup) - g;
        const Keys keys = load_keys(layer, kv_head, chunk + g, from, to, s.keys);
        for (std::size_t h = 0; h < group; ++h) {
          score(q + h * key_dim, key_dim, keys, shape.scale, s.weights + h * kChunk + g);
        }
      }
      for (std::size_t h = 0; h < group; ++h) {
        float* weights = s.weights + h * kChunk;
        if (shape.softcap != 0.0f) cap(weights, first, last, shape.softcap);
        if (scores.at != nullptr) {
          float* to_scores = scores.at + h * scores.stride + chunk;
          for (std::size_t j = first; j < last; ++j) to_scores[j] = weights[j] * kLog2E;
        }
        float maximum = -std::numeric_limits<float>::infinity();
        for (std::size_t j = first; j < last; ++j) maximum = weights[j] > maximum ? weights[j] : maximum;
        s.chunk_max[h] = maximum;
        s.chunk_sum[h] = exponentials(weights, first, last, maximum);
      }

      std::fill_n(s.partial, group * value_dim, 0.0f);
      for (std::size_t g = first_group; g < last; g += kKeyGroup) {
        const std::size_t from = std::max(first, g) - g;
        const std::size_t to = std::min(last, g + kKeyGroup) - g;
        const float* values = load_values(layer, kv_head, chunk + g, from, to, s.values);
        for (std::size_t h = 0; h < group; ++h) {
          float* partial = s.partial + h * value_dim;
          for (std::size_t j = from; j < to; ++j) {
            const float weight = s.weights[h * kChunk + g + j];
            const float* value = values + j * value_dim;
            for (std::size_t d = 0; d < value_dim; ++d) partial[d] += weight * value[d];
          }
        }
      }

      if (is_first) {
        std::copy_n(s.partial, group * value_dim, out);
        std::copy_n(s.chunk_max, group, s.max);
        std::copy_n(s.chunk_sum, group, s.sum);
      } else {
        for (std::size_t h = 0; h < group; ++h) merge(s, h, value_dim, out + h * value_dim);
      }
      is_first = false;
    }
  };
  if (shape.globals != 0) attend_to(0, std::min<std::uint64_t>(own, shape.globals));
  attend_to(own, seen_end);
  for (std::size_t h = 0; h < group; ++h) {
    if (shape.sinks != nullptr) join_sink(s, h, value_dim, shape.sinks->data[kv_head * group + h], out + h * value_dim);
    for (std::size_t d = 0; d < value_dim; ++d) out[h * value_dim + d] /= s.sum[h];
  }
}

}  // namespace tessera::cpu
