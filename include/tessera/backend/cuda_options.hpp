// Of engines with BackendKind::cuda: which GPU, and what of it they may use. No CUDA header is needed.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct CudaOptions {
  std::int32_t device = 0;          // the driver's ordinal
  // A CUstream of the device's primary context (so a runtime API's cudaStream_t), which must outlive the engine: steps
  // are put into it, in order with what the host puts there. nullptr: a stream of the engine's own.
  void* stream = nullptr;
  std::uint64_t memory_budget = 0;  // bytes of device memory that the plan may reach; 0: no limit
  // Where the driver and cuBLASLt are; empty: as the system finds libcuda.so.1, libcublasLt.so.13 or .12.
  std::string driver_library = {};
  std::string blas_library = {};
};

}  // namespace tessera
