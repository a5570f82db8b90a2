// Products of many rows, by cuBLASLt, which is loaded when an engine is made. cuBLASLt chooses the kernel, and with it the order of sums,
// by the shape of the product. So a row's result depends on how many rows are computed with it (it is not batch-invariant).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "cuda/driver/blas_api.hpp"
#include "cuda/driver/buffers.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

inline constexpr std::uint64_t kGemmWorkspace = std::uint64_t{32} << 20;  // bytes; cuBLAS advises this size for Hopper

enum class GemmType : std::uint8_t { f32, f16, bf16 };  // the type of both inputs; sums and results are f32

// Returns the type in which weights of a packed form are multiplied. Quantised weights are unpacked to f16.
[[nodiscard]] constexpr GemmType gemm_type(DeviceForm form) noexcept {
  return form == DeviceForm::f32    ? GemmType::f32
         : form == DeviceForm::bf16 ? GemmType::bf16
                                             : GemmType::f16;
}

// y[row][output] = sum over k of x[row][k] * w[output][k]. Pointers are device addresses; strides are elements from one row to the next.
struct GemmCall {
  GemmType type = GemmType::f32;
  std::uint64_t rows = 0, outputs = 0, inputs = 0;
  const void* x = nullptr;
  const void* w = nullptr;
  float* y = nullptr;
  std::uint64_t x_stride = 0, w_stride = 0, y_stride = 0;
};

class Gemm {
 public:
  // The caller must give a workspace of kGemmWorkspace bytes, by set_workspace(), before the first run().
  [[nodiscard]] static Result<std::unique_ptr<Gemm>> create(std::shared_ptr<const Device> device,
                                                            const std::string& library);
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  ~Gemm();

  void set_workspace(void* address) noexcept { workspace_ = address; }
  // Starts the product. Error unsupported: cuBLASLt has no kernel for the shape; nothing was started.
  Status run(const GemmCall& call);
  [[nodiscard]] std::uint64_t products() const noexcept { return products_; }  // number of products that have been started
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  Gemm(std::shared_ptr<const Device> device, std::shared_ptr<const BlasApi> api) noexcept;
  [[nodiscard]] Status check(cublasStatus_t status, const char* doing) const;

  // A shape's description for cuBLASLt, with the kernel that was chosen for it. Made once for each shape.
  struct Plan;
  using Shape =
      std::tuple<GemmType, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  Result<const Plan*> plan_of(const GemmCall& call);

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const BlasApi> api_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::uint64_t version_ = 0;
  std::atomic<std::uint64_t> products_ = 0;
  std::map<Shape, std::unique_ptr<Plan>> plans_;
};

}  // namespace tessera::cuda
