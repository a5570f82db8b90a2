// The CPU backend's attention: what becomes a task, and the writing of keys and values.
#include <algorithm>
#include <cstring>

#include "cpu/attention.hpp"
#include "cpu/attention_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/for_each.hpp"

namespace tessera::cpu {

Status CpuBackend::append_kv(std::uint32_t layer, Act k, Act v) {
  const Activation& keys = act(k);
  const Activation& values = act(v);
  for_each_row(keys.columns + values.columns, [&](std::size_t row, std::byte*) {
    const KvView& kv = sequences_[rows_[row].sequence];
    const KvLayerShape& shape = kv.layout->layer(layer).shape;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      write_kv(kv, layer, head, rows_[row].position, keys.data + row * keys.columns + head * shape.key_dim,
               values.data + row * values.columns + head * shape.value_dim);
    }
  });
  return {};
}

Status CpuBackend::attention(const backend::AttentionShape& shape, Act q, Act out) {
  const Activation& queries = act(q);
  Activation& to = written(out);
  if (n_rows_ == 0) return {};
  const KvLayerShape& dims = sequences_[0].layout->layer(shape.layer).shape;  // of one model: the same for all
  const std::size_t group = shape.n_heads / dims.kv_heads;
  to.columns = std::size_t{shape.n_heads} * dims.value_dim;
  if (numerics_ != Numerics::reference) {
    attend_blocks(shape, dims, queries, to);
    return {};
  }
  for_each(n_rows_ * dims.kv_heads, 1, [&](std::size_t item, std::byte* scratch) {
    const std::size_t row = item / dims.kv_heads;
    const std::size_t head = item % dims.kv_heads;
    attend(sequences_[rows_[row].sequence], shape, head, rows_[row].position,
           queries.data + row * queries.columns + head * group * dims.key_dim,
           to.data + row * to.columns + head * group * dims.value_dim, reinterpret_cast<float*>(scratch));
  });
  return {};
}

void CpuBackend::attend_blocks(const backend::AttentionShape& shape, const KvLayerShape& dims,
                               const Activation& queries, const Activation& out) noexcept {
  const std::size_t heads = dims.kv_heads, group = shape.n_heads / heads, value_dim = dims.value_dim;
  const std::span<const backend::RowTable> rows = std::span(rows_).first(n_rows_);
  const auto kernel_of = [&](const KvView& kv) -> const Attend& {
    const KvType type = kv_type_of(kv.layout->dtype);
    return kernels_.attend(attention_family_of(type), type);
  };
  std::size_t most = SIZE_MAX;  // queries of a task that suit all the KV types of the step
  for (const KvView& kv : sequences_) most = std::min(most, kernel_of(kv).queries);
  const AttentionPlan plan = plan_attention(rows, most, group, heads, shape.window, slots_, row_blocks_);
  const std::size_t units = row_blocks_.size() * heads;  // a block of rows and a KV head

  const auto run = [&](const AttendJob& job, const RowBlock& block) {
    kernel_of(sequences_[rows[block.row].sequence]).run(job);
  };
  const auto job_of = [&](const RowBlock& block, std::size_t head, std::byte* scratch) {
    AttendJob job = attend_job(sequences_[rows[block.row].sequence], shape, head);
    job.rows = block.rows;
    job.position = rows[block.row].position;
    job.q = queries.data + block.row * queries.columns + head * group * dims.key_dim;
    job.q_stride = queries.columns;
    job.out = out.data + block.row * out.columns + head * group * value_dim;
    job.out_stride = out.columns;
    job.first_chunk = block.chunks.first;
    job.last_chunk = block.chunks.last;
    job.scratch = scratch;
    return job;
  };
  if (plan.chunks_at_once == 0) {
    // The last block first: it sees most.
    const auto block_of = [&](std::size_t item) -> const RowBlock& {
      return row_blocks_[row_blocks_.size() - 1 - item / heads];
    };
    for_each(units, 1, [&](std::size_t item, std::byte* scratch) {
      AttendJob job = job_of(block_of(item), item % heads, scratch), next;
      if (item + 1 < units) {
        next = job_of(block_of(item + 1), (item + 1) % heads, nullptr);
        job.next = &next;
      }
      run(job, block_of(item));
    });
    return;
  }

  // Rounds of some chunks, as many as there is room for.
  const std::size_t stride = plan.block_rows * group * partial_floats(value_dim);  // from chunk to chunk
  const std::size_t unit_floats = plan.chunks_at_once * stride, unit_states = plan.block_rows * group * 2;
  float* states = partials_ + units * unit_floats;
  std::fill_n(states, units * unit_states, 0.0f);
  const std::size_t pieces = (plan.chunks_at_once + plan.chunks_a_piece - 1) / plan.chunks_a_piece;
  for (std::uint64_t done = 0; done < plan.most_chunks; done += plan.chunks_at_once) {
    for_each(units * pieces, 1, [&](std::size_t item, std::byte* scratch) {
      const std::size_t unit = item / pieces, at = item % pieces * plan.chunks_a_piece;
      const RowBlock& block = row_blocks_[unit / heads];
      AttendJob job = job_of(block, unit % heads, scratch);
      job.first_chunk = block.chunks.first + done + at;
      job.last_chunk = std::min<std::uint64_t>(
          job.first_chunk + std::min(plan.chunks_a_piece, plan.chunks_at_once - at), block.chunks.last);
      job.partials = partials_ + unit * unit_floats + at * stride;
      job.partial_stride = stride;
      if (job.first_chunk < job.last_chunk) run(job, block);
    });
    for_each(units, 1, [&](std::size_t unit, std::byte*) {
      const RowBlock& block = row_blocks_[unit / heads];
      const std::uint64_t all = block.chunks.last - block.chunks.first;
      if (done >= all) return;
      const std::size_t chunks = static_cast<std::size_t>(std::min<std::uint64_t>(plan.chunks_at_once, all - done));
      for (std::size_t i = 0; i < block.rows; ++i) {
        float* to = out.data + (block.row + i) * out.columns + unit % heads * group * value_dim;
        float* state = states + unit * unit_states + i * group * 2;
        merge_partials(partials_ + unit * unit_floats + i * group * partial_floats(value_dim), stride, chunks, group,
                       value_dim, state, to);
        if (done + chunks == all) finish_partials(group, value_dim, state, to);
      }
    });
  }
}

}  // namespace tessera::cpu
