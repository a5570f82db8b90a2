// A device's memory as KV pages live in it: addresses are the device's, and bytes go in and out through page-locked
// buffers on a stream of their own, so that moving pages of one session does not wait for the steps of others (giving
// memory back may: cuMemFree waits). Nothing is under way on the pages of a session outside its own calls, as
// Backend::end() has waited: the streams need no order.
#pragma once

#include <mutex>

#include <tessera/extend/core/memory.hpp>

#include "cuda/driver/buffers.hpp"

namespace tessera::cuda {

class DeviceMemory final : public Memory {
 public:
  [[nodiscard]] static Result<std::shared_ptr<DeviceMemory>> create(std::shared_ptr<const Device> device);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override;

  [[nodiscard]] void* allocate(std::size_t bytes) noexcept override;
  void release(void* base, std::size_t bytes) noexcept override;

  [[nodiscard]] bool addressable() const noexcept override { return false; }
  [[nodiscard]] bool read(std::span<const Transfer> parts) noexcept override;
  [[nodiscard]] bool write(std::span<const Transfer> parts) noexcept override;
  [[nodiscard]] bool copy(std::span<const Transfer> parts) noexcept override;
  [[nodiscard]] bool fill(void* at, unsigned char byte, std::size_t bytes) noexcept override;

  // Page-locked memory that it holds.
  static constexpr std::size_t kHostBytes = 2 * (std::size_t{1} << 20);

 private:
  explicit DeviceMemory(std::shared_ptr<const Device> device) noexcept : device_(std::move(device)) {}
  Status init();
  [[nodiscard]] bool synchronize() noexcept;

  std::shared_ptr<const Device> device_;
  std::mutex mutex_;  // of the stream and the buffer
  CUstream stream_ = nullptr;
  PinnedBuffer host_;
};

}  // namespace tessera::cuda
