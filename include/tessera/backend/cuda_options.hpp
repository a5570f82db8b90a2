// Options of engines with BackendKind::cuda: the GPU, and how much of it an engine may use. No CUDA header is needed.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct CudaOptions {
  std::int32_t device = 0;          // index of the GPU, in the CUDA driver's order
  // The stream in which the engine's steps run, in order with work that the host itself puts into the stream: a CUstream of the device's
  // primary context (a cudaStream_t of the runtime API is one). The stream must outlive the engine. nullptr: the engine makes its own
  // stream.
  void* stream = nullptr;
  std::uint64_t memory_budget = 0;  // bytes that Plan::device_peak may reach; 0: no limit
  // Paths of two libraries: the CUDA driver and cuBLASLt. If empty, the system looks for libcuda.so.1, and for libcublasLt.so.13, then
  // libcublasLt.so.12.
  std::string driver_library = {};
  std::string blas_library = {};
};

}  // namespace tessera
