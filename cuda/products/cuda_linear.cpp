// The CUDA backend's products.
#include <algorithm>

#include "core/guard.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/products/linear_plan.hpp"

namespace tessera::cuda {

Status CudaBackend::linear(const Matrix& weight, Act in, Act out) { return linear_bias(weight, nullptr, in, out); }

Status CudaBackend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  const DeviceWeight& of = weight_of(weight);
  Activation& to = written(out);
  to.columns = of.outputs;
  if (of.factors == nullptr) return product(of, bias, in, {.data = to.data});
  TESSERA_TRY_STATUS(product(of, nullptr, in, {.data = to.data}));
  TESSERA_TRY_STATUS(scale_product(of, to));
  return bias != nullptr ? add_bias(*bias, out) : Status();
}

Status CudaBackend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) {
  if (weight_of(weight).factors != nullptr) return Backend::linear_residual(weight, bias, in, scratch, x);
  return product(matrix_of(weight), bias, in,
                 {.data = written(x).data, .store = LinearStore::add, .scratch = written(scratch).data});
}

std::uint64_t CudaBackend::low_rank_bytes(const backend::LowRankShape& shape) const noexcept { return DeviceLowRank::bytes_of(shape); }

Result<std::shared_ptr<const backend::LowRank>> CudaBackend::hold_low_rank(const backend::LowRankShape& shape,
                                                                          const backend::LowRankValues& values) const {
  TESSERA_TRY(std::shared_ptr<const backend::LowRank> made, DeviceLowRank::make(kv_memory_, shape, values));
  return made;
}

Status CudaBackend::add_low_rank(std::span<const backend::LowRankTerm> terms, Act in) {
  const Device::Scope scope(*device_);
  for (const backend::LowRankTerm& term : terms) {
    (void)written(term.out);
    TESSERA_TRY_STATUS(low_rank_.add(*device_, kernels_, term, rows_of(in), rows_of(term.out)));
  }
  return {};
}

Status CudaBackend::add_low_rank_of_tokens(std::span<const backend::LowRankTerm> terms, float factor) {
  const Device::Scope scope(*device_);
  for (const backend::LowRankTerm& term : terms) {
    (void)written(term.out);
    TESSERA_TRY_STATUS(low_rank_.add_of_tokens(*device_, kernels_, term, factor, rows_.values().tokens, rows_of(term.out)));
  }
  return {};
}

// out *= the weight's factor.
Status CudaBackend::scale_product(const DeviceWeight& weight, const Activation& out) {
  const Device::Scope scope(*device_);
  return launch(kernels_.multiply_by, row_grid(), kRowThreads, 0,
                AddArgs{.y = weight.factors, .x = out.data, .columns = static_cast<std::uint32_t>(out.columns), .y_stride = 0});
}

Status CudaBackend::head_linear(const Matrix& weight, Act in, Act out) {
  const DeviceWeight& of = weight_of(weight);
  Activation& to = written(out);
  to.columns = of.outputs;
  if (rows_.count() == 0) return {};
  const Device::Scope scope(*device_);
  return multiply_heads(*device_, kernels_, {.weight = of, .x = act(in).data, .x_stride = of.inputs, .out = to.data},
                        rows_.count());
}

Status CudaBackend::product(const DeviceMatrix& weight, const Vector* bias, Act in, const ProductOut& out) {
  const Device::Scope scope(*device_);
  const std::uint32_t rows = rows_.count();
  if (many_rows_.takes(rows)) {
    TESSERA_TRY(const bool done, many_rows_.multiply(kernels_, {.weight = weight,
                                                                .bias = values_of(bias),
                                                                .act = in,
                                                                .in = rows_of(in),
                                                                .rows = rows,
                                                                .out = out}));
    if (done) return {};
  }
  const LinearPlan plan = plan_linear_few(rows, weight.outputs, static_cast<unsigned>(device_->multiprocessors()));
  const auto of_rows = std::find(kFewRows.begin(), kFewRows.end(), plan.rows_at_once) - kFewRows.begin();
  const Kernel kernel = kernels_.forms[static_cast<std::size_t>(weight.form)].few[static_cast<std::size_t>(of_rows)];
  return launch(kernel, {.x = plan.grid_x, .y = plan.grid_y}, plan.threads, 0,
                LinearArgs{.weight = weight,
                           .x = act(in).data,
                           .bias = values_of(bias),
                           .out = out.data,
                           .n_rows = rows,
                           .x_stride = static_cast<std::uint32_t>(act(in).columns),
                           .out_stride = weight.outputs,
                           .store = out.store});
}

}  // namespace tessera::cuda
