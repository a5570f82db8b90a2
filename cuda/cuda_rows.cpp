// The CUDA backend's operations on rows that only some models need.
#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/elementwise.hpp"

namespace tessera::cuda {

Status CudaBackend::softcap(float cap, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.softcap_rows, row_grid(), kRowThreads, 0,
                SoftcapArgs{.x = at.data, .columns = static_cast<std::uint32_t>(at.columns), .cap = cap});
}

Status CudaBackend::scale_by_position(double rate, std::uint64_t length, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.scale_by_position, row_grid(), kRowThreads, 0,
                PositionScaleArgs{.x = at.data,
                                  .positions = rows_.values().positions,
                                  .length = length,
                                  .rate = rate,
                                  .columns = static_cast<std::uint32_t>(at.columns),
                                  .padding = 0});
}

Status CudaBackend::gather(const Matrix& table, float scale, Act out) {
  const Device::Scope scope(*device_);
  Activation& to = written(out);
  to.columns = matrix_of(table).inputs;
  return gather_rows_of(matrix_of(table), rows_.values().gathered, to, UnpackStore::set, scale);
}

Status CudaBackend::add_segments(const Matrix& table, Act, Act x) {
  const Device::Scope scope(*device_);
  return gather_rows_of(matrix_of(table), rows_.values().segments, written(x), UnpackStore::add, 1.0f);
}

Status CudaBackend::take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) {
  const Device::Scope scope(*device_);
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = static_cast<std::size_t>(count);
  return launch(kernels_.take_columns, row_grid(), kRowThreads, 0,
                TakeColumnsArgs{.in = from.data,
                                .out = to.data,
                                .columns = static_cast<std::uint32_t>(count),
                                .first = static_cast<std::uint32_t>(first),
                                .in_stride = static_cast<std::uint32_t>(from.columns),
                                .padding = 0});
}

Status CudaBackend::weigh(Act gate, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.weigh_rows, row_grid(), kRowThreads, 0,
                WeighArgs{.gates = act(gate).data,
                          .x = at.data,
                          .columns = static_cast<std::uint32_t>(at.columns),
                          .gate_stride = static_cast<std::uint32_t>(act(gate).columns)});
}

Status CudaBackend::multiply(Act y, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  const auto columns = static_cast<std::uint32_t>(at.columns);
  return launch(kernels_.multiply_rows, row_grid(), kRowThreads, 0,
                AddArgs{.y = act(y).data, .x = at.data, .columns = columns, .y_stride = columns});
}

Status CudaBackend::group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.rms_norm, {.x = rows_.count(), .y = n_groups}, kRowThreads, 0,
                NormArgs{.in = at.data,
                         .weight = vector_of(weight).data,
                         .bias = nullptr,
                         .out = at.data,
                         .columns = static_cast<std::uint32_t>(at.columns / n_groups),
                         .eps = eps});
}

Status CudaBackend::experts(const backend::Experts& of, Act in, Act router, Act out) {
  if (of.behind != nullptr) {
    return detail::make_error(ErrorCode::unsupported,
                              "the cuda backend computes experts' products on the device, where nothing can watch or change them");
  }
  if (rows_.count() == 0) return {};
  const Device::Scope scope(*device_);
  const auto weight = [](const Matrix* matrix) { return matrix != nullptr ? &weight_of(*matrix) : nullptr; };
  Activation& to = written(out);
  to.columns = weight_of(*of.down).outputs_each();
  return expert_feeds_.compute(*device_, kernels_,
                               {.routing = of.routing,
                                .activation = of.activation,
                                .gate = weight(of.gate),
                                .up = weight(of.up),
                                .down = weight(of.down),
                                .gate_bias = values_of(of.gate_bias),
                                .up_bias = values_of(of.up_bias),
                                .down_bias = values_of(of.down_bias),
                                .choice_bias = values_of(of.routing.bias),
                                .scales = values_of(of.routing.scales),
                                .rows = rows_.count(),
                                .n_experts = static_cast<std::uint32_t>(act(router).columns),
                                .logits = act(router).data,
                                .in = act(in).data,
                                .in_columns = static_cast<std::uint32_t>(act(in).columns),
                                .out = to.data});
}

}  // namespace tessera::cuda
