#include "cuda/driver/buffers.hpp"

#include "core/error.hpp"

namespace tessera::cuda {

Result<DeviceBuffer> DeviceBuffer::allocate(std::shared_ptr<const Device> device, std::size_t bytes, const char* what) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  const Device::Scope scope(*device);
  TESSERA_TRY_STATUS(scope.status());
  CUdeviceptr address = 0;
  const CUresult result = device->api().cuMemAlloc(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return detail::make_error(ErrorCode::out_of_memory, "the GPU has no memory for {} ({} bytes)", what, bytes);
  }
  TESSERA_TRY_STATUS(device->check(result, "allocate memory"));
  buffer.device_ = device;
  buffer.address_ = address;
  buffer.size_ = bytes;
  TESSERA_TRY_STATUS(
      device->check(device->api().cuMemsetD8Async(address, 0, bytes, device->stream()), "clear its memory"));
  TESSERA_TRY_STATUS(device->synchronize());
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (device_ == nullptr) return;
  const Device::Scope scope(*device_);
  (void)device_->api().cuMemFree(address_);
}

Result<PinnedBuffer> PinnedBuffer::allocate(std::shared_ptr<const Device> device, std::size_t bytes, const char* what) {
  PinnedBuffer buffer;
  if (bytes == 0) return buffer;
  const Device::Scope scope(*device);
  TESSERA_TRY_STATUS(scope.status());
  void* data = nullptr;
  const CUresult result = device->api().cuMemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return detail::make_error(ErrorCode::out_of_memory, "no page-locked memory for {} ({} bytes)", what, bytes);
  }
  TESSERA_TRY_STATUS(device->check(result, "page-lock memory"));
  buffer.device_ = std::move(device);
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = bytes;
  return buffer;
}

PinnedBuffer::~PinnedBuffer() {
  if (device_ == nullptr) return;
  const Device::Scope scope(*device_);
  (void)device_->api().cuMemFreeHost(data_);
}

}  // namespace tessera::cuda
