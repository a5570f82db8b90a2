// Operations of latent attention: products of each head with its own matrix, and the key that all heads share.
#include <algorithm>
#include <cstring>

#include <tessera/extend/kv/records.hpp>

#include "cpu/cpu_backend.hpp"
#include "cpu/products/product.hpp"

namespace tessera::cpu {

// Computes head h of out = W_h (head h of in), for all rows: each head has a matrix of its own. A task has one head and some rows: it
// prepares these rows' inputs of the head, and multiplies them by the whole matrix of the head.
Status CpuBackend::head_linear(const Matrix& weight, Act in, Act out) {
  const Activation& from = act(in);
  Activation& to = written(out);
  const std::size_t heads = weight.shape.count, inputs = weight.shape.inputs, outputs = weight.shape.outputs;
  to.columns = heads * outputs;
  if (n_rows_ == 0) return {};
  const Family family = unrounded_family_of(weight.form, n_rows_);
  const InputForm form = input_form(family, weight.form);
  const std::size_t panel = panel_bytes(weight.form, inputs), panels = panels_of(weight.shape);
  const std::size_t blocks = divide_up(n_rows_, kHeadRows), stride = row_layout(form, inputs).bytes;
  for_each(heads * blocks, 1, [&](std::size_t item, std::byte* scratch) {
    const std::size_t head = item / blocks, first = item % blocks * kHeadRows;
    const std::size_t rows = std::min(kHeadRows, n_rows_ - first);
    const Linear& kernel = kernels_.product(family, weight.form).of(rows);
    const std::size_t group = form == InputForm::f32 ? 1 : RowCut(kernel, rows).group;
    const float* x = from.data + first * from.columns + head * inputs;
    LinearJob job{.weights = weight.data + head * panels * panel,
                  .panel_bytes = panel,
                  .panels = panels,
                  .inputs = inputs,
                  .outputs = outputs,
                  .x = reinterpret_cast<const std::byte*>(x),
                  .x_stride = from.columns * sizeof(float),
                  .group = group,
                  .out = to.data + first * to.columns + head * outputs,
                  .out_stride = to.columns,
                  .scratch = scratch,
                  .ahead = kernels_.ahead};
    if (form != InputForm::f32) {
      const PrepareFn prepare_row = kernels_.preparation(form);
      for (std::size_t row = 0; row < rows; ++row) {
        prepare_row(x + row * from.columns, inputs, scratch + group_at(row, group, stride), group);
      }
      job.x = scratch;
      job.x_stride = stride;
      job.scratch = scratch + kHeadRows * stride;
    }
    const std::size_t most = kernel.max_rows / group * group;  // the most rows of a call
    for (std::size_t done = 0; done < rows; done += most) {
      LinearJob part = job;
      part.rows = std::min(most, rows - done);
      part.x += done * job.x_stride;
      part.out += done * job.out_stride;
      kernel.run(part);
    }
  });
  return {};
}

Status CpuBackend::latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) {
  Activation &of_queries = written(turned_q), &of_key = written(turned_k), &of_latent = written(latent), &queries = written(q);
  const Activation& absorbed = act(latent_q);
  const Turns* turns = shape.rope != kNoRope ? &turns_[shape.rope] : nullptr;
  const std::size_t turned = of_key.columns, width = of_latent.columns, dim = turned + width;
  queries.columns = shape.n_heads * dim;
  for_each_row(2 * queries.columns, [&](std::size_t row, std::byte*) {
    const auto turn = [&](float* head) {
      if (turns != nullptr) kernels_.elementwise.rope(turns->row(row), turns->pairs, turns->interleaved, head);
    };
    for (std::size_t head = 0; head < shape.n_heads; ++head) {
      float* own = of_queries.data + row * of_queries.columns + head * turned;
      float* to = queries.data + row * queries.columns + head * dim;
      turn(own);
      std::memcpy(to, own, turned * sizeof(float));
      std::memcpy(to + turned, absorbed.data + row * absorbed.columns + head * width, width * sizeof(float));
    }
    float* turned_key = of_key.data + row * turned;
    float* values = of_latent.data + row * width;
    turn(turned_key);
    kernels_.elementwise.rms_norm(values, shape.norm->data, shape.eps, width, values);
    float key[kMaxHeadDim];
    std::memcpy(key, turned_key, turned * sizeof(float));
    std::memcpy(key + turned, values, width * sizeof(float));
    const backend::RowTable& at = rows_[row];
    const kv::HeadPart all{.layer = shape.layer, .part = kv::KeyOrValue::key, .head = 0};
    kv::encode(sequences_[at.sequence], all, at.position, key);
    for (const KvView& branch : branches_of(at)) kv::encode(branch, all, at.position, key);
  });
  return {};
}

}  // namespace tessera::cpu
