// One GPU as an engine uses it: its primary context, a stream, and the library's kernels. There is no global state: each engine opens and
// closes a Device for itself. Every call to the driver goes through the table of driver_api.hpp, and every result is checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

#include <tessera/core/result.hpp>

#include "cuda/driver/driver_api.hpp"

namespace tessera::cuda {

struct Kernel {
  CUfunction function = nullptr;
};

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;
};

struct DeviceOptions {
  std::int32_t ordinal = 0;
  void* stream = nullptr;      // a CUstream of the device's primary context; nullptr: open() makes one
  std::string driver_library;  // path of the driver; empty: the installed driver
};

class Device {
 public:
  // Opens a GPU. Errors: no driver; no such device; a device too old for the kernels; a stream of another context.
  [[nodiscard]] static Result<std::shared_ptr<Device>> open(const DeviceOptions& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  // Makes the device's context current on this thread for as long as the Scope lives. Code that calls the driver must have a Scope.
  class Scope {
   public:
    explicit Scope(const Device& device) noexcept;
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
    [[nodiscard]] Status status() const { return device_.check(result_, "enter the device's context"); }

   private:
    const Device& device_;
    CUresult result_;
  };

  // Turns the driver's result into a Status whose message says what failed. `doing`: what was tried, for example "copy weights". Errors:
  // out_of_memory, device_error.
  [[nodiscard]] Status check(CUresult result, const char* doing) const noexcept;

  [[nodiscard]] Result<Kernel> kernel(std::string_view name) const;
  // Allows a kernel to use `bytes` bytes of dynamic shared memory. CUDA requires this call beyond 48 KB.
  Status allow_shared(Kernel kernel, std::size_t bytes) const;
  template <class Args>
  Status launch(Kernel kernel, Grid grid, std::uint32_t threads, std::size_t shared, const Args& args) const {
    return launch_bytes(kernel, grid, threads, shared, &args);
  }

  // Starts a copy to the device. `from` must not change until synchronize() or an event says that the copy is done.
  Status to_device(CUdeviceptr to, const void* from, std::size_t bytes) const;
  Status to_host(void* to, CUdeviceptr from, std::size_t bytes) const;  // `to` is valid after synchronize()
  Status synchronize() const noexcept;
  // Waits until all work in a stream is done, so that the memory that the work used may be freed. Returns the driver's result. If the first
  // wait fails, waits a second time and returns the second result: the driver may have returned the error of an earlier call without
  // waiting at all. If the second wait fails too, the device is lost.
  [[nodiscard]] CUresult wait(CUstream stream) const noexcept;

  [[nodiscard]] const DriverApi& api() const noexcept { return *api_; }
  [[nodiscard]] CUstream stream() const noexcept { return stream_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t launches() const noexcept { return launches_; }  // kernels that have been started
  [[nodiscard]] int multiprocessors() const noexcept { return multiprocessors_; }
  [[nodiscard]] int capability() const noexcept { return capability_; }  // 90 for 9.0

 private:
  explicit Device(std::shared_ptr<const DriverApi> api) noexcept : api_(std::move(api)) {}
  Status init(const DeviceOptions& options);
  Status load_kernels();
  Status launch_bytes(Kernel kernel, Grid grid, std::uint32_t threads, std::size_t shared, const void* args) const;

  std::shared_ptr<const DriverApi> api_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  bool owns_stream_ = false;
  std::vector<CUmodule> modules_;
  std::string name_;
  int multiprocessors_ = 0;
  mutable std::atomic<std::uint64_t> launches_ = 0;
  int capability_ = 0;
};

}  // namespace tessera::cuda
