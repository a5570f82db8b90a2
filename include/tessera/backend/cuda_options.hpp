// Options of engines with BackendKind::cuda: the GPU, and how much of it an engine may use. No CUDA header is needed.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct CudaOptions {
  std::int32_t device = 0;          // index of the GPU, in the CUDA driver's order
  // A CUstream of the device's primary context (a cudaStream_t of the runtime API is one), which must outlive the engine. Steps run
  // in this stream, in order with the host's own work there. nullptr: a stream of the engine's own.
  void* stream = nullptr;
  std::uint64_t memory_budget = 0;  // bytes that Plan::device_peak may reach; 0: no limit
  // Paths of the driver and of cuBLASLt. Empty: the system looks for libcuda.so.1, and for libcublasLt.so.13, then .12.
  std::string driver_library = {};
  std::string blas_library = {};
};

}  // namespace tessera
