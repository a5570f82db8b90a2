// Products of many rows, by cuBLASLt (gemm.hpp), with activations and weights in 16 bits. Rows of an activation are converted once for all
// products that read them; quantised weights are unpacked to f16. If cuBLASLt cannot be used, or refuses a shape, all products use our own
// kernels from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/products/linear_few.hpp"
#include "cuda/products/gemm.hpp"
#include "cuda/recurrent.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

// Returns the distance between rows of 16-bit numbers, in numbers: rows begin at multiples of 16 bytes.
[[nodiscard]] constexpr std::uint32_t half_stride(std::uint64_t columns) noexcept {
  return static_cast<std::uint32_t>((columns + 7) / 8 * 8);
}

// From this many rows on, products use cuBLASLt.
inline constexpr std::size_t kGemmRows = 17;

// The destination of a product [rows, outputs]. If the product is added to `data`, cuBLASLt's result is written to `scratch` first.
struct ProductOut {
  float* data;
  LinearStore store = LinearStore::set;
  float* scratch = nullptr;
};

class ManyRowProducts {
 public:
  // `wanted`: the engine's numerics allow results that depend on the number of rows. Otherwise open() opens nothing.
  explicit ManyRowProducts(bool wanted) noexcept : wanted_(wanted) {}

  // Opens cuBLASLt. If it cannot be used, refusal() gives the reason. Error: out_of_memory.
  Status open(const std::shared_ptr<Device>& device, const std::string& library);
  // Allocates the buffers for the largest step. take(bytes) returns memory of the device.
  template <class Take>
  void lay_out(const backend::WorkspaceShape& shape, Take take) noexcept {
    if (!wanted_) return;
    const Sizes sizes = sizes_of(shape);
    half_rows_ = take(shape.rows * half_stride(sizes.widest) * 2);
    half_scales_ = reinterpret_cast<float*>(take(shape.rows * sizeof(float)));
    half_weight_bytes_ = sizes.half_weights;
    half_weights_ = take(half_weight_bytes_);
    workspace_ = take(kGemmWorkspace);
  }
  // Computes a small product of each type that the weights will need, and drops the result. cuBLASLt loads code and allocates memory at its
  // first products; with this call it does so while the model is loaded, and errors appear then and not in a step.
  Status warm_up(std::span<const backend::MatrixShape> weights);

  // Returns whether a product of `rows` rows is computed here.
  [[nodiscard]] bool takes(std::size_t rows) const noexcept { return rows >= kGemmRows && is_used(); }
  // Forget the converted rows, because the activation has changed, or because the step works on other rows.
  void forget(backend::Act changed) noexcept {
    if (half_act_ == changed) forget();
  }
  void forget() noexcept { half_act_ = backend::Act::count; }
  struct Call {
    const DeviceMatrix& weight;
    const float* bias = nullptr;  // nullptr: none
    backend::Act act;             // the input's name, by which converted rows are found again
    DeviceRows in;
    std::uint32_t rows = 0;
    ProductOut out;
  };
  // out = W in (+ bias), or out += W in (+ bias). Returns false if cuBLASLt has refused the shape: nothing was computed then.
  Result<bool> multiply(const KernelTable& kernels, const Call& call);

  [[nodiscard]] bool is_used() const noexcept { return gemm_ != nullptr && !refused_; }
  // Returns the reason why cuBLASLt is not used, although it was wanted; empty if there is none.
  [[nodiscard]] std::string refusal() const { return refused_ ? "cuBLASLt has no kernel for a shape of this model" : reason_; }
  // Return the number of products that cuBLASLt was asked for, and cuBLASLt's version. Both are 0 without cuBLASLt.
  [[nodiscard]] std::uint64_t products() const noexcept { return gemm_ != nullptr ? gemm_->products() : 0; }
  [[nodiscard]] std::uint64_t version() const noexcept { return gemm_ != nullptr ? gemm_->version() : 0; }

 private:
  struct Sizes {
    std::uint64_t widest = 0;        // columns of the widest input of a product
    std::uint64_t half_weights = 0;  // bytes
  };
  [[nodiscard]] static Sizes sizes_of(const backend::WorkspaceShape& shape) noexcept;
  void give_up(std::string why) noexcept;
  Status convert(const KernelTable& kernels, const Call& call, GemmType type);
  Status compute(const KernelTable& kernels, const Call& call);

  bool wanted_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Gemm> gemm_;
  std::string reason_;                  // why cuBLASLt could not be opened or warmed up
  std::atomic<bool> refused_ = false;   // cuBLASLt has refused a shape
  std::byte* half_rows_ = nullptr;      // [rows][inputs]: the activation half_act_, converted to 16 bits (half_type_)
  float* half_scales_ = nullptr;        // [rows]
  std::byte* half_weights_ = nullptr;   // half_weight_bytes_ of memory: weights of some outputs, unpacked to f16
  std::uint64_t half_weight_bytes_ = 0;
  std::byte* workspace_ = nullptr;      // of cuBLASLt
  backend::Act half_act_ = backend::Act::count;  // the activation in half_rows_; count: none
  GemmType half_type_ = GemmType::f16;
};

}  // namespace tessera::cuda
