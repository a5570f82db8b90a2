// The CUDA backend's steps: the uploads of a step, and the operations that are neither products nor attention.
#include "cuda/cuda_backend.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/products/unpack.hpp"

namespace tessera::cuda {

Status CudaBackend::begin(const backend::StepTables& tables) {
  if (tables.rows.size() > max_rows_) {
    return detail::make_error(ErrorCode::internal, "a step of {} rows in a workspace for {}", tables.rows.size(),
                              max_rows_);
  }
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  if (under_way_) TESSERA_TRY_STATUS(device_->synchronize());
  under_way_ = true;
  arena_.reset();
  many_rows_.forget();
  TESSERA_TRY_STATUS(rows_.begin(*device_, arena_, tables));
  recurrent_.reset();
  for (const KvSet& set : rows_.kv_sets()) TESSERA_TRY_STATUS(recurrent_.add(arena_, *set.layout, tables.rows, tables.sequences));
  TESSERA_TRY_STATUS(votes_.begin(*device_, arena_, tables.votes, tables.rows));
  TESSERA_TRY_STATUS(low_rank_.begin(device_, arena_, tables.changes));
  TESSERA_TRY(draws_, arena_.add<backend::SampleRow>(tables.draws));
  TESSERA_TRY(drawn_, arena_.add<SampleResult>(tables.draws.size()));
  TESSERA_TRY_STATUS(attention_.begin(*device_, arena_, rows_, tables.attentions));
  return arena_.flush();
}

Status CudaBackend::end() {
  const Device::Scope scope(*device_);
  under_way_ = false;
  const Status fetched = votes_.fetch(*device_);
  TESSERA_TRY_STATUS(device_->synchronize());
  if (fetched) votes_.add();
  return fetched;
}

Status CudaBackend::gather_rows_of(const DeviceMatrix& table, const std::uint32_t* indices, Activation& out, UnpackStore store,
                                   float scale) {
  return launch(kernels_.forms[static_cast<std::size_t>(table.form)].unpack_rows, row_grid(), kUnpackThreads, 0,
                UnpackRowsArgs{.table = table,
                               .indices = indices,
                               .out = out.data,
                               .scale = scale,
                               .out_stride = static_cast<std::uint32_t>(out.columns),
                               .store = store});
}

Status CudaBackend::embed(const Matrix& table, float scale, Act x) {
  const Device::Scope scope(*device_);
  Activation& out = written(x);
  out.columns = matrix_of(table).inputs;
  if (rows_.values().embeddings != nullptr) {
    TESSERA_TRY_STATUS(launch(kernels_.gather_rows, row_grid(), kRowThreads, 0,
                              GatherArgs{.rows = rows_.values().embeddings,
                                         .in = rows_.embeddings(),
                                         .out = out.data,
                                         .n_rows = rows_.count(),
                                         .columns = static_cast<std::uint32_t>(out.columns)}));
  }
  return gather_rows_of(matrix_of(table), rows_.values().tokens, out, UnpackStore::set, scale);
}

Status CudaBackend::add_positions(const Matrix& table, Act, Act x) {
  const Device::Scope scope(*device_);
  return gather_rows_of(matrix_of(table), rows_.values().places, written(x), UnpackStore::add, 1.0f);
}

Status CudaBackend::norm(const backend::Norm& norm, Act in, Act out) {
  const Device::Scope scope(*device_);
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = from.columns;
  return launch(norm.kind == NormKind::rms ? kernels_.rms_norm : kernels_.layer_norm, row_grid(), kRowThreads, 0,
                NormArgs{.in = from.data,
                         .weight = vector_of(*norm.weight).data,
                         .bias = values_of(norm.bias),
                         .out = to.data,
                         .columns = static_cast<std::uint32_t>(to.columns),
                         .eps = norm.eps});
}

Status CudaBackend::add_bias(const Vector& bias, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(
      kernels_.add_rows, row_grid(), kRowThreads, 0,
      AddArgs{
          .y = vector_of(bias).data, .x = at.data, .columns = static_cast<std::uint32_t>(at.columns), .y_stride = 0});
}

Status CudaBackend::add(Act y, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  const auto columns = static_cast<std::uint32_t>(at.columns);
  return launch(kernels_.add_rows, row_grid(), kRowThreads, 0,
                AddArgs{.y = act(y).data, .x = at.data, .columns = columns, .y_stride = columns});
}

Status CudaBackend::scale(float factor, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.scale_rows, row_grid(), kRowThreads, 0,
                ScaleArgs{.x = at.data, .columns = static_cast<std::uint32_t>(at.columns), .factor = factor});
}

Status CudaBackend::activate(ActivationKind kind, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.activate[static_cast<std::size_t>(kind)], row_grid(), kRowThreads, 0,
                ActivateArgs{.in = at.data, .out = at.data, .columns = static_cast<std::uint32_t>(at.columns)});
}

Status CudaBackend::activate_gated(ActivationKind kind, Act gate, Act up) {
  const Device::Scope scope(*device_);
  const Activation& at = written(up);
  return launch(kernels_.activate_gated[static_cast<std::size_t>(kind)], row_grid(), kRowThreads, 0,
                ActivateArgs{.in = act(gate).data, .out = at.data, .columns = static_cast<std::uint32_t>(at.columns)});
}

Status CudaBackend::select_rows(std::size_t selection, Act in, Act out) {
  const Device::Scope scope(*device_);
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = from.columns;
  const RowLists::List& selected = rows_.select(selection);
  return launch(kernels_.gather_rows, row_grid(), kRowThreads, 0,
                GatherArgs{.rows = selected.rows,
                           .in = from.data,
                           .out = to.data,
                           .n_rows = selected.count,
                           .columns = static_cast<std::uint32_t>(to.columns)});
}

Status CudaBackend::keep_rows(std::span<const Act> acts) {
  const Device::Scope scope(*device_);
  rows_.keep();
  votes_.stop();
  many_rows_.forget();  // the converted rows are those of all rows, which are no longer the present rows
  const auto compact = [&](float* data, std::size_t columns) {
    return launch(kernels_.compact_rows, {.x = static_cast<std::uint32_t>((columns + kRowThreads - 1) / kRowThreads)},
                  kRowThreads, 0,
                  GatherArgs{.rows = rows_.wanted_on_device(),
                             .in = data,
                             .out = data,
                             .n_rows = rows_.count(),
                             .columns = static_cast<std::uint32_t>(columns)});
  };
  for (const Act id : acts) TESSERA_TRY_STATUS(compact(act(id).data, act(id).columns));
  for (const RopeTurns& turns : rows_.turns()) {
    // Writing to the arena's memory on the device is allowed here: its tables have been uploaded already.
    TESSERA_TRY_STATUS(compact(const_cast<float*>(turns.table), 2 * std::size_t{turns.pairs}));
  }
  return {};
}

Status CudaBackend::read(Act x, std::uint32_t row, std::span<float> out) {
  const Device::Scope scope(*device_);
  const Activation& at = act(x);
  TESSERA_TRY_STATUS(device_->to_host(out.data(), reinterpret_cast<CUdeviceptr>(at.data + row * at.columns),
                                      std::min(out.size(), at.columns) * sizeof(float)));
  return device_->synchronize();
}

}  // namespace tessera::cuda
