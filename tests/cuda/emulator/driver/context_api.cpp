// The device and its primary context.
#include <cuda.h>
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "driver.hpp"

using namespace tessera::emulator;  // NOLINT: a file of C functions

namespace {

struct Description {
  const char* name;
  const char* text;
};

const std::map<CUresult, Description>& descriptions() {
  static const std::map<CUresult, Description> all = {
      {CUDA_SUCCESS, {"CUDA_SUCCESS", "no error"}},
      {CUDA_ERROR_INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
      {CUDA_ERROR_OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
      {CUDA_ERROR_NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
      {CUDA_ERROR_NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
      {CUDA_ERROR_INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
      {CUDA_ERROR_INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
      {CUDA_ERROR_INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
      {CUDA_ERROR_NO_BINARY_FOR_GPU,
       {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
      {CUDA_ERROR_INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
      {CUDA_ERROR_NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
      {CUDA_ERROR_NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
      {CUDA_ERROR_ILLEGAL_ADDRESS, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"}},
      {CUDA_ERROR_LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
  };
  return all;
}

// What an H100 says, unless a test says otherwise.
CUresult attribute_of(const Driver& driver, CUdevice_attribute attribute, int& value) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      value = driver.capability[0];
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      value = driver.capability[1];
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      value = driver.multiprocessors;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      value = 227 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      value = 228 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      value = 50 << 20;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      value = 1980000;
      break;  // kHz
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      value = 2619000;
      break;  // kHz
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      value = 5120;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      value = 3;
      break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
      value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      value = 1;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult of_device(Driver& driver, const char* name, CUdevice device, const void* out) {
  if (!driver.initialised) return driver.mistake(CUDA_ERROR_NOT_INITIALIZED, fmt::format("{} before cuInit", name));
  if (device != 0 || driver.device_count == 0) {
    return driver.mistake(CUDA_ERROR_INVALID_DEVICE, fmt::format("{} of device {}", name, device));
  }
  if (out == nullptr) return driver.mistake(CUDA_ERROR_INVALID_VALUE, fmt::format("{} with no place for it", name));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** name) {
  const auto found = descriptions().find(error);
  *name = found == descriptions().end() ? nullptr : found->second.name;
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  const auto found = descriptions().find(error);
  *text = found == descriptions().end() ? nullptr : found->second.text;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuInit(unsigned flags) {
  return call("cuInit", Needs::nothing, [&](Driver& driver) {
    if (flags != 0) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuInit with flags");
    if (driver.device_count == 0) return CUDA_ERROR_NO_DEVICE;
    driver.initialised = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", Needs::nothing, [&](Driver&) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", Needs::nothing, [&](Driver& driver) {
    if (!driver.initialised) return driver.mistake(CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGetCount before cuInit");
    *count = driver.device_count;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", Needs::nothing, [&](Driver& driver) {
    if (const CUresult result = of_device(driver, "cuDeviceGet", ordinal, device); result != CUDA_SUCCESS)
      return result;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return call("cuDeviceGetName", Needs::nothing, [&](Driver& driver) {
    if (const CUresult result = of_device(driver, "cuDeviceGetName", device, name); result != CUDA_SUCCESS)
      return result;
    if (length <= 0) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetName with no room");
    std::memset(name, 0, static_cast<std::size_t>(length));
    std::strncpy(name, "Emulated GPU", static_cast<std::size_t>(length) - 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call("cuDeviceGetAttribute", Needs::nothing, [&](Driver& driver) {
    const CUresult result = of_device(driver, "cuDeviceGetAttribute", device, value);
    if (result != CUDA_SUCCESS) return result;
    return attribute_of(driver, attribute, *value);
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem", Needs::nothing, [&](Driver& driver) {
    const CUresult result = of_device(driver, "cuDeviceTotalMem", device, bytes);
    if (result == CUDA_SUCCESS) *bytes = driver.total_memory;
    return result;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", Needs::nothing, [&](Driver& driver) {
    const CUresult result = of_device(driver, "cuDevicePrimaryCtxRetain", device, context);
    if (result != CUDA_SUCCESS) return result;
    ++driver.context.retained;
    *context = primary_context();
    return CUDA_SUCCESS;
  });
}

// The last release ends the context; what was made in it and not destroyed stays in the counts of what is live.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release("cuDevicePrimaryCtxRelease", Needs::nothing, [&](Driver& driver) {
    const CUresult result = of_device(driver, "cuDevicePrimaryCtxRelease", device, &driver);
    if (result != CUDA_SUCCESS) return result;
    if (driver.context.retained == 0) {
      return driver.mistake(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease of what nobody retains");
    }
    if (--driver.context.retained == 0) {
      (void)driver.drain_all();
      driver.context.lost = CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return call("cuCtxPushCurrent", Needs::nothing, [&](Driver& driver) {
    if (context != primary_context() || driver.context.retained == 0) {
      return driver.mistake(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent of what is no context");
    }
    current_contexts().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return release("cuCtxPopCurrent", Needs::nothing, [&](Driver& driver) {
    if (current_contexts().empty()) {
      return driver.mistake(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent without a current context");
    }
    if (context != nullptr) *context = current_contexts().back();
    current_contexts().pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return call("cuCtxSynchronize", Needs::context, [](Driver& driver) { return driver.drain_all(); });
}
}
