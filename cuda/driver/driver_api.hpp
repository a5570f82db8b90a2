// The CUDA driver's functions that tessera calls. The driver is loaded when an engine is made, so a program that contains tessera also
// starts on machines without a driver.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include <tessera/core/result.hpp>

// The list of the driver's functions that are looked up, under the names that cuda.h gives them. cuda.h redefines some of these names by
// macros (cuMemAlloc becomes cuMemAlloc_v2). The same macros rename the members of DriverApi, so api.cuMemAlloc(...) is written like a
// direct call.
#define TESSERA_DRIVER_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDriverGetVersion)             \
  X(cuGetErrorName)                 \
  X(cuGetErrorString)               \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuDeviceTotalMem_v2)            \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease_v2)   \
  X(cuCtxPushCurrent_v2)            \
  X(cuCtxPopCurrent_v2)             \
  X(cuCtxSynchronize)               \
  X(cuMemGetInfo_v2)                \
  X(cuMemAlloc_v2)                  \
  X(cuMemFree_v2)                   \
  X(cuMemHostAlloc)                 \
  X(cuMemFreeHost)                  \
  X(cuMemcpyHtoDAsync_v2)           \
  X(cuMemcpyDtoHAsync_v2)           \
  X(cuMemcpyDtoDAsync_v2)           \
  X(cuMemsetD8Async)                \
  X(cuStreamCreateWithPriority)     \
  X(cuStreamDestroy_v2)             \
  X(cuStreamSynchronize)            \
  X(cuStreamWaitEvent)              \
  X(cuStreamGetCtx)                 \
  X(cuEventCreate)                  \
  X(cuEventDestroy_v2)              \
  X(cuEventRecord)                  \
  X(cuEventSynchronize)             \
  X(cuEventElapsedTime)             \
  X(cuModuleLoadData)               \
  X(cuModuleUnload)                 \
  X(cuModuleGetFunction)            \
  X(cuFuncSetAttribute)             \
  X(cuLaunchKernel)

namespace tessera::cuda {

struct DriverApi {
#define TESSERA_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_DRIVER_FUNCTIONS(TESSERA_MEMBER)
#undef TESSERA_MEMBER
};

// Loads the library at `path`. If `path` is empty, loads the installed driver.
Result<std::shared_ptr<const DriverApi>> load_driver_api(const std::string& path);

}  // namespace tessera::cuda
