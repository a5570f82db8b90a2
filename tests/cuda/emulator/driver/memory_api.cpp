// Device memory, page-locked memory, and copies between them.
#include <cuda.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <vector>

#include "driver.hpp"

using namespace tessera::emulator;  // NOLINT: a file of C functions

namespace {

void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(at); }

CUresult no_stream(Driver& driver, const char* name) {
  return driver.mistake(CUDA_ERROR_INVALID_HANDLE, fmt::format("{} on a stream that is none", name));
}

CUresult check_device(Driver& driver, const char* name, CUdeviceptr at, std::size_t bytes) {
  if (driver.device.holds(pointer(at), bytes)) return CUDA_SUCCESS;
  return driver.mistake(CUDA_ERROR_INVALID_VALUE,
                        fmt::format("{}: {} bytes that are not all in one piece of device memory", name, bytes));
}

// Host memory is anything else; a page-locked piece must hold all of it.
CUresult check_host(Driver& driver, const char* name, const void* at, std::size_t bytes) {
  if (at == nullptr || driver.device.touches(at, bytes)) {
    return driver.mistake(CUDA_ERROR_INVALID_VALUE, fmt::format("{}: not host memory", name));
  }
  if (driver.pinned.touches(at, bytes) && !driver.pinned.holds(at, bytes)) {
    return driver.mistake(CUDA_ERROR_INVALID_VALUE, fmt::format("{}: past the end of page-locked memory", name));
  }
  return CUDA_SUCCESS;
}

// What is queued runs while the memory is there: frees of device memory wait, those of page-locked memory need not.
CUresult copy_host(Driver& driver, const char* name, bool was_pinned, const void* host, std::size_t bytes, void* to,
                   const void* from) {
  if (was_pinned && !driver.pinned.holds(host, bytes)) {
    driver.lose(CUDA_ERROR_ILLEGAL_ADDRESS, fmt::format("{}: its page-locked memory was freed before it ran", name));
    return driver.context.lost;
  }
  std::memcpy(to, from, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return call("cuMemGetInfo", Needs::context, [&](Driver& driver) {
    const std::size_t used = driver.device.bytes();
    *free = used < driver.total_memory ? driver.total_memory - used : 0;
    *total = driver.total_memory;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* at, std::size_t bytes) {
  return call("cuMemAlloc", Needs::context, [&](Driver& driver) {
    if (at == nullptr || bytes == 0) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc of nothing");
    const std::size_t used = driver.device.bytes();
    if (used > driver.total_memory || bytes > driver.total_memory - used) return CUDA_ERROR_OUT_OF_MEMORY;
    void* const memory = driver.device.allocate(bytes);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *at = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr at) {
  return release("cuMemFree", Needs::context, [&](Driver& driver) {
    if (at == 0) return CUDA_SUCCESS;
    const CUresult result = driver.drain_all();
    if (!driver.device.free(pointer(at))) {
      return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuMemFree of what cuMemAlloc did not give");
    }
    return result;
  });
}

CUresult cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  return call("cuMemHostAlloc", Needs::context, [&](Driver& driver) {
    if (at == nullptr || bytes == 0) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuMemHostAlloc of nothing");
    *at = driver.pinned.allocate(bytes);
    return *at != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult cuMemFreeHost(void* at) {
  return release("cuMemFreeHost", Needs::context, [&](Driver& driver) {
    if (driver.pinned.free(at)) return CUDA_SUCCESS;
    return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost of what cuMemHostAlloc did not give");
  });
}

// From page-locked memory it reads when it runs; from other memory now, as a driver stages it.
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream handle) {
  return call("cuMemcpyHtoDAsync", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    if (stream == nullptr) return no_stream(driver, "cuMemcpyHtoDAsync");
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult r = check_device(driver, "cuMemcpyHtoDAsync", to, bytes); r != CUDA_SUCCESS) return r;
    if (const CUresult r = check_host(driver, "cuMemcpyHtoDAsync", from, bytes); r != CUDA_SUCCESS) return r;
    ++driver.uploads;
    if (driver.pinned.holds(from, bytes)) {
      driver.push(*stream, {[=, &driver] {
                              return copy_host(driver, "cuMemcpyHtoDAsync", true, from, bytes, pointer(to), from);
                            },
                            {},
                            {}});
    } else {
      const auto* const first = static_cast<const unsigned char*>(from);
      auto staged = std::make_shared<std::vector<unsigned char>>(first, first + bytes);
      driver.push(*stream, {[=] {
                              std::memcpy(pointer(to), staged->data(), bytes);
                              return CUDA_SUCCESS;
                            },
                            {},
                            {}});
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return call("cuMemcpyDtoHAsync", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    if (stream == nullptr) return no_stream(driver, "cuMemcpyDtoHAsync");
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult r = check_device(driver, "cuMemcpyDtoHAsync", from, bytes); r != CUDA_SUCCESS) return r;
    if (const CUresult r = check_host(driver, "cuMemcpyDtoHAsync", to, bytes); r != CUDA_SUCCESS) return r;
    const bool pinned = driver.pinned.holds(to, bytes);
    driver.push(*stream,
                {[=, &driver] { return copy_host(driver, "cuMemcpyDtoHAsync", pinned, to, bytes, to, pointer(from)); },
                 {},
                 {}});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return call("cuMemcpyDtoDAsync", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    if (stream == nullptr) return no_stream(driver, "cuMemcpyDtoDAsync");
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult r = check_device(driver, "cuMemcpyDtoDAsync", to, bytes); r != CUDA_SUCCESS) return r;
    if (const CUresult r = check_device(driver, "cuMemcpyDtoDAsync", from, bytes); r != CUDA_SUCCESS) return r;
    if (to < from + bytes && from < to + bytes) {
      return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuMemcpyDtoDAsync between places that overlap");
    }
    driver.push(*stream, {[=] {
                            std::memcpy(pointer(to), pointer(from), bytes);
                            return CUDA_SUCCESS;
                          },
                          {},
                          {}});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream handle) {
  return call("cuMemsetD8Async", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    if (stream == nullptr) return no_stream(driver, "cuMemsetD8Async");
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult r = check_device(driver, "cuMemsetD8Async", to, bytes); r != CUDA_SUCCESS) return r;
    driver.push(*stream, {[=] {
                            std::memset(pointer(to), value, bytes);
                            return CUDA_SUCCESS;
                          },
                          {},
                          {}});
    return CUDA_SUCCESS;
  });
}
}
