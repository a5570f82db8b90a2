// The emulated driver's tables with a current context and a stream, and everything given back.
#pragma once

#include <emulator/control.hpp>

#include <memory>

#include "catch.hpp"
#include "cuda/driver/blas_api.hpp"
#include "cuda/driver/driver_api.hpp"

namespace tessera::tests {

inline std::shared_ptr<const cuda::DriverApi> emulated_driver() {
  return *cuda::load_driver_api(TESSERA_CUDA_EMULATOR);
}
inline std::shared_ptr<const cuda::BlasApi> emulated_blas() { return *cuda::load_blas_api(TESSERA_CUDA_EMULATOR); }

class Rig {
 public:
  Rig() {
    tessera_emulator_reset();
    REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent(context) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  }
  ~Rig() {
    (void)api.cuStreamDestroy(stream);
    (void)api.cuCtxPopCurrent(nullptr);
    (void)api.cuDevicePrimaryCtxRelease(0);
    CHECK(tessera_emulator_live_count() == 0);
    CHECK(tessera_emulator_context_depth() == 0);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  CUdeviceptr device(std::size_t bytes) const {
    CUdeviceptr at = 0;
    REQUIRE(api.cuMemAlloc(&at, bytes) == CUDA_SUCCESS);
    return at;
  }
  template <class T>
  T* pinned(std::size_t n) const {
    void* at = nullptr;
    REQUIRE(api.cuMemHostAlloc(&at, n * sizeof(T), 0) == CUDA_SUCCESS);
    return static_cast<T*>(at);
  }

  std::shared_ptr<const cuda::DriverApi> table = emulated_driver();
  const cuda::DriverApi& api = *table;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

}  // namespace tessera::tests
