// CudaBackend::explain(): the kernel and the family of every operation.
#include <algorithm>

#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/weights/packing.hpp"

namespace tessera::cuda {

namespace {


constexpr const char* kFamily = "cuda-f32";       // our own kernels
constexpr const char* kGemmFamily = "cuda-blas";  // cuBLASLt's kernels: a row's bits depend on the number of rows

}  // namespace

std::vector<backend::Explanation> CudaBackend::explain() const {
  std::vector<backend::Explanation> lines;
  if (device_ != nullptr) {
    lines.push_back({.operation = Operation::device,
                     .kernel = fmt::format("{}, sm_{}, {} multiprocessors", device_->name(), device_->capability(),
                                           device_->multiprocessors())});
    lines.push_back(
        {.operation = Operation::work,
         .kernel = fmt::format("{} kernels and {} products of cuBLASLt's so far", device_->launches(), many_rows_.products())});
  }
  const auto add = [&](Operation operation, std::string kernel, DType dtype = DType::f32) {
    lines.push_back({.operation = operation, .kernel = std::move(kernel), .family = kFamily, .dtype = dtype});
  };
  std::vector<DType> types;  // formats of the weights, each once, in the order in which they first occur
  for (const MatrixShape& shape : weights_.shapes()) {
    if (std::find(types.begin(), types.end(), shape.dtype) == types.end()) types.push_back(shape.dtype);
  }
  for (const DType type : types) {
    const std::string form(kFormNames[static_cast<std::size_t>(device_form_of(type))]);
    if (invariant()) {
      add(Operation::linear, fmt::format("linear_few_{}", form), type);
      continue;
    }
    const std::string own = fmt::format("linear_few_{}, up to {} rows", form, kGemmRows - 1);
    const bool blas = many_rows_.is_used();
    lines.push_back({.operation = Operation::linear,
                     .detail = ", few rows",
                     .kernel = blas ? own : fmt::format("linear_few_{}", form),
                     .family = kFamily,
                     .dtype = type,
                     .fallback = many_rows_.refusal()});
    if (!blas) continue;
    const char* in = type == DType::f32 ? "f32" : type == DType::bf16 ? "bf16" : "f16";
    lines.push_back({.operation = Operation::linear,
                     .detail = ", many rows",
                     .kernel = fmt::format("cuBLASLt {} in {}: bits depend on the rows", many_rows_.version(), in),
                     .family = kGemmFamily,
                     .dtype = type});
  }
  for (const DType kv : kKvTypes) add(Operation::attention, "tiles of 4 to 16 queries, segments of 512 keys", kv);
  add(Operation::append_kv, "a warp a head", DType::automatic);
  for (const Operation of : {Operation::embed, Operation::add_positions}) add(of, "unpack_rows");
  for (const Operation of : {Operation::norm, Operation::rope, Operation::activation, Operation::residual})
    add(of, "f32");
  add(Operation::routing, "route_experts, a warp a row");
  add(Operation::sampling, "sample_tokens, without a sort");
  return lines;
}

}  // namespace tessera::cuda
