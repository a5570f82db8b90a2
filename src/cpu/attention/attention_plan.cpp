#include "cpu/attention/attention_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cpu/products/packed_matrix.hpp"

namespace tessera::cpu {

KvType kv_type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32: return KvType::f32;
    case DType::f16: return KvType::f16;
    case DType::bf16: return KvType::bf16;
    case DType::int8: return KvType::int8;
    case DType::fp8: return KvType::fp8;
    case DType::int4: return KvType::int4;
    case DType::k8v4: return KvType::k8v4;
    default: return KvType::count;
  }
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
  job.values_in_keys = layer.shape.values == kv::Values::in_keys;
  job.query_group = shape.n_heads / layer.shape.kv_heads;
  job.window = shape.window;
  job.ahead = shape.ahead;
  job.scale = shape.scale;
  job.softcap = shape.softcap;
  if (shape.sinks != nullptr) job.sinks = shape.sinks->data + kv_head * job.query_group;
  return job;
}

namespace {

// Returns 2^x for one number, with the same bits as the kernels (docs/reference/numerics.md, "Attention").
float exp2_negative(float x) noexcept {
  if (x < -125.0f) return 0.0f;
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x + kRound, n = shifted - kRound, r = x - n;
  float p = 0x1.5bba10p-10f;
  for (const float c : {0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f}) p = std::fma(p, r, c);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  return x == x ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent) : x;
}

}  // namespace

void AttentionPlan::reserve(std::size_t rows) {
  blocks_.reserve(rows);
  global_blocks_.reserve(rows);
  shared_blocks_.reserve(rows);
  shared_.reserve(rows);
}

void AttentionPlan::start(const Call& call) noexcept {
  call_ = call;
  const std::size_t most_rows = attend_rows(call.queries, call.query_group);
  cut_rows(most_rows);
  find_globals();
  // Only blocks with at most half of the rows of a full task share chunks. Larger blocks are large enough for a task already, so they
  // would gain little from rows of other sequences. If rows see later keys (shape.ahead), no chunks are shared, because then no two
  // sequences have pages in common.
  shares_ = call.shape.ahead == 0 && shared_.find(call.rows, call.sequences, call.shape, most_rows / 2, blocks_);
  ahead_ = global_blocks_.empty() ? behind_globals() : Ahead::globals;
}

AttentionPlan::Ahead AttentionPlan::behind_globals() const noexcept {
  if (!shares_) return Ahead::rest;
  return shared_.before().empty() ? Ahead::shared : Ahead::before;
}

void AttentionPlan::find_globals() noexcept {
  global_blocks_.clear();
  if (call_.shape.globals == 0) return;
  for (const RowBlock& block : blocks_) {
    const Chunks chunks =
        global_chunks_of(call_.rows[block.row + block.rows - 1].position + 1, call_.shape.window, call_.shape.globals);
    if (chunks.last != 0) global_blocks_.push_back({block.row, block.rows, chunks});
  }
}

bool AttentionPlan::next(AttentionPhase& phase) noexcept {
  switch (ahead_) {
    case Ahead::globals:
      phase = phase_of(global_blocks_);
      phase.is_last = false;
      phase.globals = call_.shape.globals;
      ahead_ = behind_globals();
      return true;
    case Ahead::before:
      phase = phase_of(shared_.before());
      phase.is_last = false;
      ahead_ = Ahead::shared;
      return true;
    case Ahead::shared:
      phase = shared_phase();
      if (!shared_.descend()) ahead_ = Ahead::rest;
      return true;
    case Ahead::rest:
      phase = rest();
      ahead_ = Ahead::nothing;
      return true;
    case Ahead::nothing: break;
  }
  return false;
}

// Returns how many tasks a phase should have so that threads of unequal speed end at about the same time; 0 with one thread.
std::size_t AttentionPlan::enough() const noexcept { return call_.slots > 1 ? 4 * call_.slots : 0; }

// Returns the number of chunks whose partial results fit the workspace at once, if blocks have `block_rows` rows.
std::size_t AttentionPlan::room(std::size_t block_rows) const noexcept {
  const std::size_t queries = split_queries(call_.query_group);
  return split_pieces(call_.slots) * queries / std::max(block_rows * call_.query_group, queries);
}

// Cuts the step's rows into blocks of at most `most_rows` rows. The rows of a block belong to one sequence and have consecutive positions.
void AttentionPlan::cut_rows(std::size_t most_rows) noexcept {
  const auto& rows = call_.rows;
  blocks_.clear();
  for (std::size_t row = 0, end = 0; row < rows.size(); row = end) {
    for (end = row + 1; end < rows.size() && end - row < most_rows; ++end) {
      if (rows[end].sequence != rows[row].sequence || rows[end].position != rows[end - 1].position + 1) break;
    }
    blocks_.push_back({row, end - row, chunks_of(rows[row].position, end_of_keys(rows[end - 1], call_.shape), call_.shape.window)});
  }
}

AttentionPhase AttentionPlan::phase_of(std::span<const RowBlock> blocks) const noexcept {
  AttentionPhase phase{.blocks = blocks};
  for (const RowBlock& block : blocks) {
    phase.block_rows = std::max(phase.block_rows, block.rows);
    phase.most_chunks = std::max(phase.most_chunks, block.chunks.last - block.chunks.first);
  }
  const std::size_t units = blocks.size() * call_.kv_heads, at_once = room(phase.block_rows);
  if (units >= enough() || units > at_once || phase.most_chunks == 1) return phase;
  phase.chunks_at_once = static_cast<std::size_t>(std::min<std::uint64_t>(at_once / units, phase.most_chunks));
  phase.chunks_a_task = std::max<std::size_t>(1, phase.chunks_at_once * units / (2 * enough()));
  return phase;
}

// Returns the phase for the present level of shared chunks, with blocks of a suitable size. Large blocks are better: every block reads
// all keys of its chunks, so many small blocks read the same keys again and again. Blocks are made smaller only if there are too few
// tasks for all threads, even when the chunks of a block are divided among tasks.
AttentionPhase AttentionPlan::shared_phase() noexcept {
  std::size_t most_rows = attend_rows(call_.queries, call_.query_group);
  for (;; most_rows = (most_rows + 1) / 2) {
    shared_.cut(most_rows, shared_blocks_);
    AttentionPhase phase = phase_of(shared_blocks_);
    phase.row_numbers = shared_.row_numbers();
    phase.is_last = false;
    const std::size_t tasks = shared_blocks_.size() * call_.kv_heads * std::max<std::size_t>(phase.chunks_at_once, 1);
    if (tasks >= enough() || most_rows <= attend_rows(split_queries(call_.query_group), call_.query_group)) return phase;
  }
}

AttentionPhase AttentionPlan::rest() noexcept {
  if (shares_) return phase_of(blocks_);
  std::size_t most_rows = attend_rows(call_.queries, call_.query_group);
  const std::size_t fewest = attend_rows(split_queries(call_.query_group), call_.query_group);
  while (blocks_.size() * call_.kv_heads < enough() && most_rows > fewest) {
    most_rows = (most_rows + 1) / 2;
    cut_rows(most_rows);
  }
  return phase_of(blocks_);
}

void merge_partials(const float* partials, std::size_t stride, std::size_t chunks, std::size_t query_group,
                    std::size_t value_dim, float* states, float* out) noexcept {
  for (std::size_t i = 0; i < chunks * query_group; ++i) {
    const float* partial = partials + i / query_group * stride + i % query_group * partial_floats(value_dim);
    float* total = out + i % query_group * value_dim;
    float* state = states + i % query_group * 2;
    const float maximum = partial[value_dim], sum = partial[value_dim + 1];
    if (sum == 0.0f) continue;  // the row sees no key of the chunk: with a visible key the sum is at least 1, or NaN
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

void finish_partials(std::size_t query_group, std::size_t value_dim, const float* sinks, const float* states,
                     float* out) noexcept {
  for (std::size_t head = 0; head < query_group; ++head, out += value_dim, states += 2) {
    float sum = states[1];
    if (sinks != nullptr) {
      const float sink = sinks[head] * kLog2E;
      const float merged = sink > states[0] ? sink : states[0];
      const float kept = exp2_negative(states[0] - merged);
      sum = sum * kept + exp2_negative(sink - merged);
      for (std::size_t d = 0; d < value_dim; ++d) out[d] *= kept;
    }
    for (std::size_t d = 0; d < value_dim; ++d) out[d] /= sum;
  }
}

}  // namespace tessera::cpu
