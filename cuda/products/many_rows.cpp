#include "cuda/products/many_rows.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "cuda/kernels/products/gemm_rows.hpp"
#include "cuda/kernels/products/unpack.hpp"
#include "cuda/weights/packing.hpp"

namespace tessera::cuda {

namespace {

// The most bytes for weights that are unpacked to f16. If a product's weights need more, they are unpacked in pieces.
constexpr std::uint64_t kMostHalfWeights = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastHalfWeights = 16 << 10;  // bytes for the matrices of warm_up()

}  // namespace

Status ManyRowProducts::open(const std::shared_ptr<Device>& device, const std::string& library) {
  device_ = device;
  if (!wanted_) return {};
  auto gemm = Gemm::create(device, library);
  if (gemm) {
    gemm_ = *std::move(gemm);
  } else if (gemm.error().code() == ErrorCode::out_of_memory) {
    return std::move(gemm).error();
  } else {
    give_up(gemm.error().message());
  }
  return {};
}

// Called when cuBLASLt cannot be used: from now on our own kernels compute all products. `why`: the reason, which explain() shows. Engines
// that must not fall back check this and refuse to load.
void ManyRowProducts::give_up(std::string why) noexcept {
  reason_ = std::move(why);
  gemm_.reset();
}

ManyRowProducts::Sizes ManyRowProducts::sizes_of(const backend::WorkspaceShape& shape) noexcept {
  Sizes sizes;
  const std::uint64_t logits = shape.columns[static_cast<std::size_t>(backend::Act::logits)];
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    if (i != static_cast<std::size_t>(backend::Act::logits)) sizes.widest = std::max(sizes.widest, shape.columns[i]);
  }
  const std::uint64_t outputs = std::max(sizes.widest, logits);
  // At least 64 outputs, the smallest piece in which weights are unpacked.
  sizes.half_weights =
      std::max({std::min(kMostHalfWeights, sizes.widest * round_up(outputs, 64) * 2), sizes.widest * 64 * 2, kLeastHalfWeights});
  return sizes;
}

Status ManyRowProducts::warm_up(std::span<const backend::MatrixShape> weights) {
  if (gemm_ == nullptr) return {};
  const Device::Scope scope(*device_);
  gemm_->set_workspace(workspace_);
  constexpr std::uint64_t kSize = 16;
  std::byte* at = half_weights_;
  Status status;
  for (const GemmType type : {GemmType::f32, GemmType::f16, GemmType::bf16}) {
    const bool used = std::ranges::any_of(
        weights, [&](const backend::MatrixShape& shape) { return gemm_type(device_form_of(shape.dtype)) == type; });
    if (!used || !status) continue;
    status = gemm_->run({.type = type,
                         .rows = kSize,
                         .outputs = kSize,
                         .inputs = kSize,
                         .x = at,
                         .w = at + kLeastHalfWeights / 4,
                         .y = reinterpret_cast<float*>(at + kLeastHalfWeights / 2),
                         .x_stride = kSize,
                         .w_stride = kSize,
                         .y_stride = kSize});
  }
  if (!status && status.error().code() == ErrorCode::out_of_memory) return status;
  TESSERA_TRY_STATUS(device_->synchronize());
  if (!status) give_up(status.error().message());
  return {};
}

Result<bool> ManyRowProducts::multiply(const KernelTable& kernels, const Call& call) {
  const Status status = compute(kernels, call);
  if (status) return true;
  if (status.error().code() != ErrorCode::unsupported) return status.error();
  refused_ = true;
  return false;
}

// Converts an activation to 16-bit numbers, once for all products that read it.
Status ManyRowProducts::convert(const KernelTable& kernels, const Call& call, GemmType type) {
  if (half_act_ == call.act && half_type_ == type) return {};
  half_act_ = call.act;
  half_type_ = type;
  return device_->launch(type == GemmType::f16 ? kernels.rows_to_half : kernels.rows_to_bf16, {.x = call.rows}, kGemmRowThreads, 0,
                         NarrowRowsArgs{.in = call.in.data,
                                        .out = reinterpret_cast<std::uint16_t*>(half_rows_),
                                        .scales = half_scales_,
                                        .columns = call.in.columns,
                                        .in_stride = call.in.columns,
                                        .out_stride = half_stride(call.in.columns)});
}

// Computes a product by cuBLASLt. If the weights are quantised, they are unpacked to f16 first, as many outputs at a time as half_weights_
// holds. If they are F32, F16 or BF16, they are multiplied as they are.
Status ManyRowProducts::compute(const KernelTable& kernels, const Call& call) {
  const DeviceMatrix& weight = call.weight;
  const ProductOut& out = call.out;
  const GemmType type = gemm_type(weight.form);
  if (type != GemmType::f32) TESSERA_TRY_STATUS(convert(kernels, call, type));
  const bool unpack = is_quantised(weight.form);
  const std::uint32_t value_bytes = type == GemmType::f32 ? 4 : 2;
  // Weights are unpacked in pieces of a multiple of 64 outputs, so that each piece begins at a multiple of 256 bytes.
  const std::uint64_t most = half_weight_bytes_ / (2 * std::uint64_t{weight.inputs}) / 64 * 64;
  const std::uint64_t step = unpack ? most : weight.outputs;
  float* y = out.store == LinearStore::add ? out.scratch : out.data;
  for (std::uint64_t first = 0; first < weight.outputs; first += step) {
    const std::uint64_t n = std::min<std::uint64_t>(step, weight.outputs - first);
    if (unpack) {
      TESSERA_TRY_STATUS(device_->launch(kernels.forms[static_cast<std::size_t>(weight.form)].unpack_half,
                                         {.x = static_cast<std::uint32_t>(n), .y = (weight.inputs + kHalfTile - 1) / kHalfTile},
                                         kUnpackThreads, 0,
                                         UnpackHalfArgs{.weight = weight,
                                                        .out = reinterpret_cast<std::uint16_t*>(half_weights_),
                                                        .first = static_cast<std::uint32_t>(first)}));
    }
    TESSERA_TRY_STATUS(gemm_->run({.type = type,
                                   .rows = call.rows,
                                   .outputs = n,
                                   .inputs = weight.inputs,
                                   .x = type == GemmType::f32 ? static_cast<const void*>(call.in.data) : half_rows_,
                                   .w = unpack ? half_weights_ : weight.data + first * weight.stride[0],
                                   .y = y + first,
                                   .x_stride = type == GemmType::f32 ? weight.inputs : half_stride(weight.inputs),
                                   .w_stride = unpack ? weight.inputs : weight.stride[0] / value_bytes,
                                   .y_stride = weight.outputs}));
  }
  const bool scaled = type == GemmType::f16;
  if (!scaled && call.bias == nullptr && out.store == LinearStore::set) return {};
  return device_->launch(kernels.finish_rows, {.x = call.rows, .y = (weight.outputs + kFinishTile - 1) / kFinishTile}, kGemmRowThreads, 0,
                         FinishRowsArgs{.y = y,
                                        .scales = scaled ? half_scales_ : nullptr,
                                        .bias = call.bias,
                                        .out = out.data,
                                        .columns = weight.outputs,
                                        .y_stride = weight.outputs,
                                        .out_stride = weight.outputs,
                                        .store = out.store == LinearStore::add ? FinishStore::add : FinishStore::set});
}

}  // namespace tessera::cuda
