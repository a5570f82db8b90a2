// The CPU backend's fused operations, for example a norm and the products of its output. A fused operation does all its work on one row
// before it goes to the next row, while the row is in the caches. The plain operations would go over all rows once for each operation.
#include <cstring>

#include "cpu/attention/write_kv.hpp"
#include "cpu/cpu_backend.hpp"

namespace tessera::cpu {

Status CpuBackend::rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) {
  const Activation& queries = written(q);
  const Activation& keys = shape.queries_alone ? act(k) : written(k);
  const Activation& values = shape.v_norm != nullptr ? written(v) : act(v);
  const Turns* turns = shape.rope != kNoRope ? &turns_[shape.rope] : nullptr;
  for_each_row(queries.columns + keys.columns + values.columns, [&](std::size_t row, std::byte*) {
    const auto norm_and_turn = [&](float* heads, std::size_t n_heads, std::size_t head_dim, const Vector* weight) {
      const auto norm = [&] {
        if (weight == nullptr) return;
        const std::size_t dim = shape.norms_together ? n_heads * head_dim : head_dim;
        for (float* at = heads; at != heads + n_heads * head_dim; at += dim) {
          kernels_.elementwise.rms_norm(at, weight->data, shape.eps, dim, at);
        }
      };
      if (!shape.norms_behind_rope) norm();
      for (float* head = heads; turns != nullptr && head != heads + n_heads * head_dim; head += head_dim) {
        kernels_.elementwise.rope(turns->row(row), turns->pairs, turns->interleaved, head);
      }
      if (shape.norms_behind_rope) norm();
    };
    const backend::RowTable& at = rows_[row];
    const KvView& kv = sequences_[at.sequence];
    const KvLayerShape& dims = kv.layout->layer(shape.layer).shape;
    norm_and_turn(queries.data + row * queries.columns, shape.n_heads, dims.key_dim, shape.q_norm);
    if (shape.queries_alone) return;
    float* row_keys = keys.data + row * keys.columns;
    float* row_values = values.data + row * values.columns;
    norm_and_turn(row_keys, shape.n_kv_heads, dims.key_dim, shape.k_norm);
    for (std::size_t head = 0; head < shape.n_kv_heads; ++head) {
      float* value = row_values + head * dims.value_dim;
      if (shape.v_norm != nullptr) kernels_.elementwise.rms_norm(value, shape.v_norm->data, shape.eps, dims.value_dim, value);
      const float* key = row_keys + head * dims.key_dim;
      write_kv(kv, shape.layer, head, at.position, key, value);
      for (const KvView& branch : branches_of(at)) write_kv(branch, shape.layer, head, at.position, key, value);
    }
  });
  return {};
}

Status CpuBackend::keep_rows(std::span<const Act> acts) {
  const std::span<const std::uint32_t> rows = wanted_;
  const auto compact = [&](float* data, std::size_t columns) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != i) std::memcpy(data + i * columns, data + rows[i] * columns, columns * sizeof(float));
    }
  };
  for (const Act id : acts) compact(act(id).data, act(id).columns);
  for (const Turns& turns : turns_) compact(turns.factors, 4 * turns.pairs);
  for (std::size_t i = 0; i < rows.size(); ++i) rows_[i] = rows_[rows[i]];
  prepared_kind_ = {};  // the prepared rows are still all rows of the step, so the rows must be prepared again
  n_rows_ = rows.size();
  voters_.clear();
  return {};
}

}  // namespace tessera::cpu
