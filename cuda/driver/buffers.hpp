// Buffers in a device's memory, and page-locked buffers in the host's memory. Copies between the two kinds run while the processor does
// other work.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "cuda/driver/device.hpp"

namespace tessera::cuda {

// A piece of a device's memory. The destructor waits for the operations that use the memory, and then frees it.
class DeviceBuffer {
 public:
  DeviceBuffer() noexcept = default;
  // Allocates `bytes` bytes and sets them to zero. For zero bytes, returns an empty buffer. `what`: the buffer's purpose, for the error
  // message.
  [[nodiscard]] static Result<DeviceBuffer> allocate(std::shared_ptr<const Device> device, std::size_t bytes,
                                                     const char* what);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer old(std::move(other));
    swap(old);
    return *this;
  }
  ~DeviceBuffer();

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  // Returns the address for kernels' arguments. The processor must not read or write there.
  [[nodiscard]] std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<const Device> device_;
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
};

// Page-locked host memory. A copy from it runs later than the call that starts it, so its contents must not change until the copy is done.
class PinnedBuffer {
 public:
  PinnedBuffer() noexcept = default;
  [[nodiscard]] static Result<PinnedBuffer> allocate(std::shared_ptr<const Device> device, std::size_t bytes,
                                                     const char* what);
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    PinnedBuffer old(std::move(other));
    swap(old);
    return *this;
  }
  ~PinnedBuffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void swap(PinnedBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<const Device> device_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera::cuda
