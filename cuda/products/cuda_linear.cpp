// The CUDA backend's products.
#include <algorithm>

#include "core/guard.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/products/gemm_rows.hpp"
#include "cuda/kernels/products/unpack.hpp"
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
    TESSERA_TRY_STATUS(low_rank_.add_of_tokens(*device_, kernels_, term, factor, lists().tokens, rows_of(term.out)));
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
  if (n_rows_ == 0) return {};
  const Device::Scope scope(*device_);
  return multiply_heads(*device_, kernels_, {.weight = of, .x = act(in).data, .x_stride = of.inputs, .out = to.data},
                        static_cast<std::uint32_t>(n_rows_));
}

Status CudaBackend::product(const DeviceMatrix& weight, const Vector* bias, Act in, const ProductOut& out) {
  const Device::Scope scope(*device_);
  if (gemm_ != nullptr && !gemm_refused_ && n_rows_ >= kGemmRows) {
    Status status = gemm_product(weight, bias, in, out);
    if (status || status.error().code() != ErrorCode::unsupported) return status;
    gemm_refused_ = true;
  }
  const auto rows = static_cast<std::uint32_t>(n_rows_);
  const LinearPlan plan = plan_linear_few(rows, weight.outputs, static_cast<unsigned>(device_->multiprocessors()));
  const auto of_rows = std::find(kFewRows.begin(), kFewRows.end(), plan.rows_at_once) - kFewRows.begin();
  const Kernel kernel = kernels_.forms[static_cast<std::size_t>(weight.form)].few[static_cast<std::size_t>(of_rows)];
  return launch(kernel, {.x = plan.grid_x, .y = plan.grid_y}, plan.threads, 0,
                LinearArgs{.weight = weight,
                           .x = act(in).data,
                           .bias = bias != nullptr ? vector_of(*bias).data : nullptr,
                           .out = out.data,
                           .n_rows = rows,
                           .x_stride = static_cast<std::uint32_t>(act(in).columns),
                           .out_stride = weight.outputs,
                           .store = out.store});
}

// Converts an activation to 16-bit numbers, once for all products that read it.
Status CudaBackend::prepare_half(Act in, GemmType type) {
  if (half_act_ == in && half_type_ == type) return {};
  const auto columns = static_cast<std::uint32_t>(act(in).columns);
  half_act_ = in;
  half_type_ = type;
  return launch(type == GemmType::f16 ? kernels_.rows_to_half : kernels_.rows_to_bf16, row_grid(), kGemmRowThreads, 0,
                NarrowRowsArgs{.in = act(in).data,
                               .out = reinterpret_cast<std::uint16_t*>(half_rows_),
                               .scales = half_scales_,
                               .columns = columns,
                               .in_stride = columns,
                               .out_stride = half_stride(columns)});
}

// Computes a product by cuBLASLt. Quantised weights are unpacked to f16 first, as many outputs at a time as half_weights_ holds. Weights in
// F32, F16 and BF16 are multiplied as they are.
Status CudaBackend::gemm_product(const DeviceMatrix& weight, const Vector* bias, Act in,
                                 const ProductOut& out) {
  const GemmType type = gemm_type(weight.form);
  if (type != GemmType::f32) TESSERA_TRY_STATUS(prepare_half(in, type));
  const bool unpack = is_quantised(weight.form);
  const std::uint32_t value_bytes = type == GemmType::f32 ? 4 : 2;
  // Weights are unpacked in pieces of a multiple of 64 outputs, so that each piece begins at a multiple of 256 bytes.
  const std::uint64_t most = half_weight_bytes_ / (2 * std::uint64_t{weight.inputs}) / 64 * 64;
  const std::uint64_t step = unpack ? most : weight.outputs;
  float* y = out.store == LinearStore::add ? out.scratch : out.data;
  for (std::uint64_t first = 0; first < weight.outputs; first += step) {
    const std::uint64_t n = std::min<std::uint64_t>(step, weight.outputs - first);
    if (unpack) {
      TESSERA_TRY_STATUS(launch(kernels_.forms[static_cast<std::size_t>(weight.form)].unpack_half,
                                {.x = static_cast<std::uint32_t>(n), .y = (weight.inputs + kHalfTile - 1) / kHalfTile},
                                kUnpackThreads, 0,
                                UnpackHalfArgs{.weight = weight,
                                               .out = reinterpret_cast<std::uint16_t*>(half_weights_),
                                               .first = static_cast<std::uint32_t>(first)}));
    }
    TESSERA_TRY_STATUS(gemm_->run({.type = type,
                                   .rows = n_rows_,
                                   .outputs = n,
                                   .inputs = weight.inputs,
                                   .x = type == GemmType::f32 ? static_cast<const void*>(act(in).data) : half_rows_,
                                   .w = unpack ? half_weights_ : weight.data + first * weight.stride[0],
                                   .y = y + first,
                                   .x_stride = type == GemmType::f32 ? weight.inputs : half_stride(weight.inputs),
                                   .w_stride = unpack ? weight.inputs : weight.stride[0] / value_bytes,
                                   .y_stride = weight.outputs}));
  }
  const bool scaled = type == GemmType::f16;
  if (!scaled && bias == nullptr && out.store == LinearStore::set) return {};
  return launch(kernels_.finish_rows,
                {.x = static_cast<std::uint32_t>(n_rows_), .y = (weight.outputs + kFinishTile - 1) / kFinishTile},
                kGemmRowThreads, 0,
                FinishRowsArgs{.y = y,
                               .scales = scaled ? half_scales_ : nullptr,
                               .bias = bias != nullptr ? vector_of(*bias).data : nullptr,
                               .out = out.data,
                               .columns = weight.outputs,
                               .y_stride = weight.outputs,
                               .out_stride = weight.outputs,
                               .store = out.store == LinearStore::add ? FinishStore::add : FinishStore::set});
}

}  // namespace tessera::cuda
