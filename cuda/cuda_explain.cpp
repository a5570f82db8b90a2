// CudaBackend::explain(): the kernel and the family of every operation.
#include <algorithm>

#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "formats/formats.hpp"

namespace tessera::cuda {

namespace {

constexpr const char* kFamily = "cuda-f32";       // our own kernels
constexpr const char* kGemmFamily = "cuda-blas";  // cuBLASLt's kernels: a row's bits depend on the number of rows

}  // namespace

std::vector<backend::Explanation> CudaBackend::explain() const {
  std::vector<backend::Explanation> lines;
  if (device_ != nullptr) {
    lines.push_back({"device",
                     fmt::format("{}, sm_{}, {} multiprocessors", device_->name(), device_->capability(),
                                 device_->multiprocessors()),
                     "", "-", ""});
  }
  if (device_ != nullptr) {
    const std::uint64_t products = gemm_ != nullptr ? gemm_->products() : 0;
    lines.push_back({"work",
                     fmt::format("{} kernels and {} products of cuBLASLt's so far", device_->launches(), products), "",
                     "-", ""});
  }
  std::vector<DType> types;  // formats of the weights, in the order of the first matrix of each
  for (const MatrixShape& shape : shapes_) {
    if (std::find(types.begin(), types.end(), shape.dtype) == types.end()) types.push_back(shape.dtype);
  }
  for (const DType type : types) {
    const std::string name(to_string(type));
    const std::string form(kFormNames[static_cast<std::size_t>(formats::packed_form_of(type))]);
    if (invariant()) {
      lines.push_back({"linear", fmt::format("linear_few_{}", form), kFamily, name, ""});
      continue;
    }
    const std::string own = fmt::format("linear_few_{}, up to {} rows", form, kGemmRows - 1);
    const bool blas = gemm_ != nullptr && !gemm_refused_;
    const std::string why = gemm_refused_ ? "cuBLASLt has no kernel for a shape of this model" : no_gemm_;
    lines.push_back({"linear, few rows", blas ? own : fmt::format("linear_few_{}", form), kFamily, name, why});
    if (!blas) continue;
    const char* in = type == DType::f32 ? "f32" : type == DType::bf16 ? "bf16" : "f16";
    lines.push_back({"linear, many rows",
                     fmt::format("cuBLASLt {} in {}: bits depend on the rows", gemm_->version(), in), kGemmFamily, name,
                     ""});
  }
  for (const DType kv : kKvTypes) {
    lines.push_back(
        {"attention", "tiles of 4 to 16 queries, segments of 512 keys", kFamily, std::string(to_string(kv)), ""});
  }
  lines.push_back({"append_kv", "a warp a head", kFamily, "", ""});
  for (const char* operation : {"embed", "add_positions"})
    lines.push_back({operation, "unpack_rows", kFamily, "F32", ""});
  for (const char* operation : {"norm", "rope", "activation", "residual"}) {
    lines.push_back({operation, "f32", kFamily, "F32", ""});
  }
  lines.push_back({"sampling", "sample_tokens, without a sort", kFamily, "F32", ""});
  return lines;
}

}  // namespace tessera::cuda
