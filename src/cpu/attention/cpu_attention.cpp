// The CPU backend's attention: runs the tasks of attention plans, and writes keys and values to the cache.
#include <algorithm>
#include <cstring>

#include <tessera/extend/kv/records.hpp>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/attention/reference_attention.hpp"
#include "cpu/attention/write_kv.hpp"
#include "cpu/cpu_backend.hpp"
#include "kv/codecs.hpp"
#include "kv/rotation.hpp"

namespace tessera::cpu {

Status CpuBackend::append_kv(std::uint32_t layer, Act k, Act v) {
  const Activation& keys = act(k);
  const Activation& values = act(v);
  for_each_row(keys.columns + values.columns, [&](std::size_t row, std::byte*) {
    const backend::RowTable& at = rows_[row];
    const KvView& kv = sequences_[at.sequence];
    const KvLayerShape& shape = kv.layout->layer(layer).shape;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const float *key = keys.data + row * keys.columns + head * shape.key_dim, *value = values.data + row * values.columns + head * shape.value_dim;
      write_kv(kv, layer, head, at.position, key, value);
      for (const KvView& branch : branches_of(at)) write_kv(branch, layer, head, at.position, key, value);
    }
  });
  return {};
}

Status CpuBackend::shift_rows(std::uint32_t layer, Act x) {
  const Activation& rows = act(x);
  const auto each_head = [&](std::size_t row, const auto& visit) {
    const KvView& kv = sequences_[rows_[row].sequence];
    const KvLayerShape& shape = kv.layout->layer(layer).shape;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      visit(kv, kv::HeadPart{.layer = layer, .part = kv::KeyOrValue::key, .head = head}, rows.data + row * rows.columns + head * shape.key_dim, shape.key_dim);
    }
  };
  for_each_row(rows.columns, [&](std::size_t row, std::byte*) {
    const backend::RowTable& at = rows_[row];
    each_head(row, [&](const KvView& kv, const kv::HeadPart& part, const float* values, std::size_t) {
      kv::encode(kv, part, at.position, values);
      for (const KvView& branch : branches_of(at)) kv::encode(branch, part, at.position, values);
    });
  });
  for_each_row(rows.columns, [&](std::size_t row, std::byte*) {
    const std::uint64_t position = rows_[row].position;
    each_head(row, [&](const KvView& kv, const kv::HeadPart& part, float* values, std::size_t dim) {
      if (position == 0) std::fill_n(values, dim, 0.0f);
      else kv::decode(kv, part, position - 1, values);
    });
  });
  return {};
}

Status CpuBackend::attention(const backend::AttentionShape& shape, Act q, Act out) {
  const Activation& queries = act(q);
  Activation& to = written(out);
  if (n_rows_ == 0) return {};
  const KvLayerShape& dims = sequences_[0].layout->layer(shape.layer).shape;  // the same for all sequences, since they have one model
  const std::size_t group = shape.n_heads / dims.kv_heads;
  to.columns = std::size_t{shape.n_heads} * dims.value_dim;
  const bool counts = shape.counts_votes && voters_.any();
  if (numerics_ != Numerics::reference) {
    attend_blocks(shape, dims, queries, to);
  } else {
    for_each(n_rows_ * dims.kv_heads, 1, [&](std::size_t item, std::byte* scratch) {
      const std::size_t row = item / dims.kv_heads;
      const std::size_t head = item % dims.kv_heads;
      float* scores = counts ? voters_.scores()[row] : nullptr;
      if (scores != nullptr) scores += head * group * voters_.stride();
      attend_reference(sequences_[rows_[row].sequence], shape, head, rows_[row].position, end_of_keys(rows_[row], shape),
             queries.data + row * queries.columns + head * group * dims.key_dim,
             to.data + row * to.columns + head * group * dims.value_dim, reinterpret_cast<float*>(scratch),
             {.at = scores, .stride = voters_.stride()});
    });
  }
  if (counts) count_votes(shape);
  return {};
}

void CpuBackend::attend_blocks(const backend::AttentionShape& shape, const KvLayerShape& dims,
                               const Activation& queries, const Activation& out) noexcept {
  // The number of queries in a task: the smallest Attend::queries of the sequences' kernels, which differ if the KV types differ.
  std::size_t most = SIZE_MAX;
  for (const KvView& kv : sequences_) most = std::min(most, attend_kernel(kv, shape.layer).queries);
  attention_plan_.start({.rows = std::span(rows_).first(n_rows_),
                         .sequences = sequences_,
                         .shape = shape,
                         .queries = most,
                         .kv_heads = dims.kv_heads,
                         .query_group = shape.n_heads / dims.kv_heads,
                         .slots = tasks_.slots()});
  if (attention_plan_.shares()) std::fill_n(space_.states, n_rows_ * shape.n_heads * 2, 0.0f);
  const AttentionCall call{shape, dims, queries, out};
  for (AttentionPhase phase; attention_plan_.next(phase);) {
    if (phase.chunks_at_once == 0) attend_whole(call, phase);
    else attend_split(call, phase);
  }
}

const Attend& CpuBackend::attend_kernel(const KvView& kv, std::uint32_t layer) const noexcept {
  const KvType type = kv_type_of(kv.layout->layer(layer).dtype);
  return kernels_.attend(attention_family_of(type), type);
}

// Returns the KV view of a block's first row. It has the right pages for all rows of the block: they belong to one sequence, or their
// sequences have the block's chunks in the same pages.
const KvView& CpuBackend::kv_of(const AttentionPhase& phase, const RowBlock& block) const noexcept {
  return sequences_[rows_[phase.row_numbers != nullptr ? phase.row_numbers[block.row] : block.row].sequence];
}

AttendJob CpuBackend::attend_job_of(const AttentionCall& call, const AttentionPhase& phase, const RowBlock& block,
                                    std::size_t head, std::byte* scratch) const noexcept {
  AttendJob job = attend_job(kv_of(phase, block), call.shape, head);
  const std::size_t first_head = head * job.query_group;
  std::size_t row = 0;  // the row of the step at which the job's pointers (q, out, states) begin
  if (phase.row_numbers != nullptr) {
    job.row_numbers = phase.row_numbers + block.row;
    job.position = block.chunks.last * kChunk - 1;
    job.window = 0;
  } else {
    row = block.row;
    job.position = rows_[row].position;
    job.end = rows_[row].end;
    job.globals = phase.globals;
  }
  job.rows = block.rows;
  job.q = call.queries.data + row * call.queries.columns + first_head * job.key_dim;
  job.q_stride = call.queries.columns;
  job.out = call.out.data + row * call.out.columns + first_head * job.value_dim;
  job.out_stride = call.out.columns;
  if (attention_plan_.shares()) {
    job.states = space_.states + (row * call.shape.n_heads + first_head) * 2;
    job.state_stride = std::size_t{call.shape.n_heads} * 2;
  }
  if (call.shape.counts_votes && voters_.any()) {
    job.scores = voters_.scores() + row;
    job.score_stride = voters_.stride();
    job.first_head = first_head;
  }
  job.is_last = phase.is_last;
  job.first_chunk = block.chunks.first;
  job.last_chunk = block.chunks.last;
  job.scratch = scratch;
  return job;
}

void CpuBackend::attend_whole(const AttentionCall& call, const AttentionPhase& phase) noexcept {
  const std::size_t heads = call.dims.kv_heads, units = phase.blocks.size() * heads;  // a unit is a block and a KV head
  // Items are in reverse order of blocks: the last block of a prompt sees the most keys and so takes longest, so it should start first.
  const auto block_of = [&](std::size_t item) -> const RowBlock& {
    return phase.blocks[phase.blocks.size() - 1 - item / heads];
  };
  for_each(units, 1, [&](std::size_t item, std::byte* scratch) {
    AttendJob job = attend_job_of(call, phase, block_of(item), item % heads, scratch), next;
    if (item + 1 < units) {
      next = attend_job_of(call, phase, block_of(item + 1), (item + 1) % heads, nullptr);
      job.next = &next;
    }
    attend_kernel(kv_of(phase, block_of(item)), call.shape.layer).run(job);
  });
}

// Computes a phase whose blocks are too few for all threads: several tasks divide the chunks of a block. Works in rounds. A round
// computes chunks until the workspace is full of partial results, and then merges the results.
void CpuBackend::attend_split(const AttentionCall& call, const AttentionPhase& phase) noexcept {
  const std::size_t heads = call.dims.kv_heads, group = call.shape.n_heads / heads, value_dim = call.dims.value_dim;
  const std::size_t units = phase.blocks.size() * heads;
  const std::size_t stride = phase.block_rows * group * partial_floats(value_dim);  // floats from chunk to chunk
  const std::size_t unit_floats = phase.chunks_at_once * stride;
  const std::size_t tasks = (phase.chunks_at_once + phase.chunks_a_task - 1) / phase.chunks_a_task;  // tasks of a unit
  if (!attention_plan_.shares()) std::fill_n(space_.states, n_rows_ * call.shape.n_heads * 2, 0.0f);
  for (std::uint64_t done = 0; done < phase.most_chunks; done += phase.chunks_at_once) {
    for_each(units * tasks, 1, [&](std::size_t item, std::byte* scratch) {
      const std::size_t unit = item / tasks, at = item % tasks * phase.chunks_a_task;
      const RowBlock& block = phase.blocks[unit / heads];
      AttendJob job = attend_job_of(call, phase, block, unit % heads, scratch);
      job.first_chunk = block.chunks.first + done + at;
      job.last_chunk = std::min<std::uint64_t>(
          job.first_chunk + std::min(phase.chunks_a_task, phase.chunks_at_once - at), block.chunks.last);
      job.partials = space_.partials + unit * unit_floats + at * stride;
      job.partial_stride = stride;
      if (job.first_chunk < job.last_chunk) attend_kernel(kv_of(phase, block), call.shape.layer).run(job);
    });
    for_each(units, 1, [&](std::size_t unit, std::byte*) {
      const RowBlock& block = phase.blocks[unit / heads];
      const std::uint64_t all = block.chunks.last - block.chunks.first;
      if (done >= all) return;
      const std::size_t chunks = static_cast<std::size_t>(std::min<std::uint64_t>(phase.chunks_at_once, all - done));
      for (std::size_t i = 0; i < block.rows; ++i) {
        const std::size_t row = phase.row_numbers != nullptr ? phase.row_numbers[block.row + i] : block.row + i;
        const std::size_t head = unit % heads * group;
        float* to = call.out.data + row * call.out.columns + head * value_dim;
        float* state = space_.states + (row * call.shape.n_heads + head) * 2;
        merge_partials(space_.partials + unit * unit_floats + i * group * partial_floats(value_dim), stride, chunks, group,
                       value_dim, state, to);
        const float* sinks = call.shape.sinks != nullptr ? call.shape.sinks->data + head : nullptr;
        if (!phase.is_last || done + chunks != all) continue;
        finish_partials(group, value_dim, sinks, state, to);
        if (!kv::rotates(kv_of(phase, block).layout->layer(call.shape.layer).dtype, kv::KeyOrValue::value)) continue;
        for (std::size_t j = 0; j < group; ++j) kv::rotate(to + j * value_dim, value_dim, kv::Turn::out);
      }
    });
  }
}

}  // namespace tessera::cpu
