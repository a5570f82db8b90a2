// Engines of the CUDA backend for tests: on the emulated device, or on a real one if TESSERA_TEST_CUDA is "device".
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include <emulator/control.hpp>

#include "engine/models.hpp"

namespace tessera::test {

// Under AddressSanitizer the emulator's fibers take some twenty times as long.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kSlower = 8;
#else
inline constexpr std::size_t kSlower = 1;
#endif

inline bool on_real_device() {
  const char* where = std::getenv("TESSERA_TEST_CUDA");
  return where != nullptr && std::string_view(where) == "device";
}

inline std::string emulator_library() { return place("TESSERA_TEST_EMULATOR", TESSERA_CUDA_EMULATOR).string(); }

inline CudaOptions cuda_options() {
  if (on_real_device()) return {};
  return {.driver_library = emulator_library(), .blas_library = emulator_library()};
}

inline EngineOptions on_cuda(EngineOptions options = {}) {
  options.backend = BackendKind::cuda;
  if (on_real_device()) options.fallback = Fallback::refuse;  // cuBLASLt must be there
  options.cuda = cuda_options();
  return options;
}

// What has run on the device so far, as explain() says it.
struct Work {
  std::uint64_t kernels = 0, products = 0;
};
inline Work work_of(const Engine& engine) {
  Work work;
  for (const KernelUse& use : must(engine.explain())) {
    if (use.kind == Operation::work) std::istringstream(use.kernel) >> work.kernels;
    if (const auto at = use.kernel.find(" and "); use.kind == Operation::work && at != std::string::npos) {
      std::istringstream(use.kernel.substr(at + 5)) >> work.products;
    }
  }
  return work;
}

// What CUDA is compared with: the CPU, every product and sum in f32.
inline EngineOptions on_reference(EngineOptions options = {}) {
  options.numerics = Numerics::reference;
  options.threads = 2;
  return options;
}

// The largest difference, as a share of the largest reference value. NaN if either has one.
inline float relative_difference(std::span<const float> values, std::span<const float> reference) {
  float difference = 0.0f, largest = 0.0f;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const float d = values[i] > reference[i] ? values[i] - reference[i] : reference[i] - values[i];
    if (d != d) return d;
    difference = std::max(difference, d);
    largest = std::max(largest, std::max(reference[i], -reference[i]));
  }
  return largest > 0.0f ? difference / largest : difference;
}

// Tolerances of logits, as shares of the largest one. All sums are f32 in another order than the reference's, which
// alone gives some 1e-6. What a KV type adds: where an f32 that is to be stored lies at the border of two stored
// numbers, the two backends round it to different ones, a unit of the type apart; such keys and values are few among
// those that a row sees, but at the beginning of a sequence a row sees few.
inline float tolerance_of_kv(DType type) {
  switch (type) {
    case DType::f32: return 1e-4f;
    case DType::f16: return 3e-3f;   // a unit is 2^-10
    case DType::bf16: return 2e-2f;  // 2^-7
    case DType::int4:
    case DType::k8v4: return 0.2f;   // up to an eighth of the largest of 16 numbers
    default: return 2e-2f;           // int8: 1/127 of the head's largest
  }
}
// Products of cuBLAS's read activations of 16 bits, and weights as such: one rounding each, of 2^-11 (F16, and what is
// unpacked to it) or 2^-8 (BF16), averaged over a row.
inline float tolerance_of_gemm(DType weights) {
  return weights == DType::f32 ? 0.0f : weights == DType::bf16 ? 3e-2f : 4e-3f;
}

}  // namespace tessera::test
