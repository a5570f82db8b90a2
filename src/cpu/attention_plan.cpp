#include "cpu/attention_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::cpu {

KvType kv_type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32: return KvType::f32;
    case DType::f16: return KvType::f16;
    case DType::bf16: return KvType::bf16;
    case DType::int8: return KvType::int8;
    default: return KvType::count;
  }
}

Chunks chunks_of(std::uint64_t first, std::uint64_t last, std::uint64_t window) noexcept {
  const std::uint64_t begin = window != 0 && first >= window ? first - window + 1 : 0;
  return {begin / kChunk, (last + kChunk - 1) / kChunk};
}

AttendJob attend_job(const KvView& kv, const backend::AttentionShape& shape, std::size_t kv_head) noexcept {
  const KvLayerView view = kv.layer(shape.layer);
  const KvLayerLayout& layer = *view.layout;
  AttendJob job;
  job.pages = view.pages;
  job.page_tokens = view.page_tokens;
  job.k_offset = layer.k_offset + kv_head * layer.k_stride;
  job.v_offset = layer.v_offset + kv_head * layer.v_stride;
  job.key_dim = layer.shape.key_dim;
  job.value_dim = layer.shape.value_dim;
  job.group = shape.n_heads / layer.shape.kv_heads;
  job.window = shape.window;
  job.scale = shape.scale;
  return job;
}

namespace {

// What the kernels take for 2^x (docs/numerics.md, "Attention"), said for one number.
float exp2_negative(float x) noexcept {
  if (x < -125.0f) return 0.0f;
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x + kRound, n = shifted - kRound, r = x - n;
  float p = 0x1.5bba10p-10f;
  for (const float c : {0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f}) p = std::fma(p, r, c);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  return x == x ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent) : x;
}

// Blocks of at most `most` rows.
void cut_rows(std::span<const backend::RowTable> rows, std::size_t most, std::uint64_t window,
              std::vector<RowBlock>& blocks) noexcept {
  blocks.clear();
  for (std::size_t row = 0, end = 0; row < rows.size(); row = end) {
    for (end = row + 1; end < rows.size() && end - row < most; ++end) {
      if (rows[end].sequence != rows[row].sequence || rows[end].position != rows[end - 1].position + 1) break;
    }
    blocks.push_back({row, end - row, chunks_of(rows[row].position, rows[end - 1].position + 1, window)});
  }
}

}  // namespace

AttentionPlan plan_attention(std::span<const backend::RowTable> rows, std::size_t queries, std::size_t group,
                             std::size_t kv_heads, std::uint64_t window, std::size_t slots,
                             std::vector<RowBlock>& blocks) noexcept {
  AttentionPlan plan;
  const std::size_t enough = slots > 1 ? 4 * slots : 0;  // pieces that even out threads of unequal speed
  plan.block_rows = attend_rows(queries, group);
  cut_rows(rows, plan.block_rows, window, blocks);
  while (blocks.size() * kv_heads < enough && plan.block_rows > attend_rows(split_queries(group), group)) {
    plan.block_rows = (plan.block_rows + 1) / 2;
    cut_rows(rows, plan.block_rows, window, blocks);
  }
  for (const RowBlock& block : blocks) {
    plan.most_chunks = std::max(plan.most_chunks, block.chunks.last - block.chunks.first);
  }
  const std::size_t units = blocks.size() * kv_heads, room = split_pieces(slots);
  if (units >= enough || units > room || plan.most_chunks == 1) return plan;
  plan.block_rows = std::min(plan.block_rows, attend_rows(split_queries(group), group));
  plan.chunks_at_once = static_cast<std::size_t>(std::min<std::uint64_t>(room / units, plan.most_chunks));
  plan.chunks_a_piece = std::max<std::size_t>(1, plan.chunks_at_once * units / (2 * enough));
  return plan;
}

void merge_partials(const float* partials, std::size_t stride, std::size_t chunks, std::size_t group,
                    std::size_t value_dim, float* states, float* out) noexcept {
  for (std::size_t i = 0; i < chunks * group; ++i) {
    const float* partial = partials + i / group * stride + i % group * partial_floats(value_dim);
    float* total = out + i % group * value_dim;
    float* state = states + i % group * 2;
    const float maximum = partial[value_dim], sum = partial[value_dim + 1];
    if (sum == 0.0f) continue;  // of a visible key's weights it is 1 or more, or NaN
    if (state[1] == 0.0f) {
      std::memcpy(total, partial, value_dim * sizeof(float));
      state[0] = maximum;
      state[1] = sum;
      continue;
    }
    const float merged = maximum > state[0] ? maximum : state[0];
    const float kept = exp2_negative(state[0] - merged), taken = exp2_negative(maximum - merged);
    for (std::size_t d = 0; d < value_dim; ++d) total[d] = total[d] * kept + partial[d] * taken;
    state[0] = merged;
    state[1] = state[1] * kept + sum * taken;
  }
}

void finish_partials(std::size_t group, std::size_t value_dim, const float* states, float* out) noexcept {
  for (std::size_t i = 0; i < group * value_dim; ++i) out[i] /= states[i / value_dim * 2 + 1];
}

}  // namespace tessera::cpu
