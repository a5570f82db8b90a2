// A device's memory for KV pages: allocates it, and copies bytes between it and the host. Addresses are device addresses. Copies go through
// page-locked buffers, on a stream of their own, so that moving the pages of one session does not wait for the steps of other sessions.
// Exception: freeing memory may wait, because cuMemFree does. The copies' stream and the stream of the steps need no order between them:
// kernels use a session's pages only inside a step, and Backend::end() waits for the step.
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

  // Bytes of page-locked memory in each DeviceMemory.
  static constexpr std::size_t kHostBytes = 2 * (std::size_t{1} << 20);

 private:
  explicit DeviceMemory(std::shared_ptr<const Device> device) noexcept : device_(std::move(device)) {}
  Status init();
  [[nodiscard]] bool synchronize() noexcept;

  std::shared_ptr<const Device> device_;
  std::mutex mutex_;  // guards the stream and the buffer
  CUstream stream_ = nullptr;
  PinnedBuffer host_;
};

}  // namespace tessera::cuda
