#include "cuda/device_memory.hpp"

#include <algorithm>
#include <cstring>

#include "core/guard.hpp"

namespace tessera::cuda {

namespace {

CUdeviceptr address_of(const void* at) noexcept { return reinterpret_cast<CUdeviceptr>(at); }

// Copies parts of any size by way of a buffer of `room` bytes: cuts the parts into pieces that fill the buffer one after another. Calls
// piece(offset in the buffer, to, from, bytes) for each piece. Calls done(), which empties the buffer, whenever the buffer is full and once
// at the end. If a call returns false, returns false at once.
template <class Piece, class Done>
bool in_rooms(std::span<const Transfer> parts, std::size_t room, Piece piece, Done done) noexcept {
  std::size_t used = 0;
  for (const Transfer& part : parts) {
    for (std::size_t at = 0; at < part.bytes;) {
      if (used == room) {
        if (!done()) return false;
        used = 0;
      }
      const std::size_t n = std::min(part.bytes - at, room - used);
      if (!piece(used, static_cast<std::byte*>(part.to) + at, static_cast<const std::byte*>(part.from) + at, n))
        return false;
      used += n;
      at += n;
    }
  }
  return done();
}

}  // namespace

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::create(std::shared_ptr<const Device> device) {
  std::shared_ptr<DeviceMemory> memory(new DeviceMemory(std::move(device)));
  TESSERA_TRY_STATUS(memory->init());
  return memory;
}

Status DeviceMemory::init() {
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  TESSERA_TRY_STATUS(device_->check(device_->api().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
                                    "make a stream for KV pages"));
  TESSERA_TRY(host_, PinnedBuffer::allocate(device_, kHostBytes, "moving KV pages"));
  return {};
}

DeviceMemory::~DeviceMemory() {
  const Device::Scope scope(*device_);
  if (stream_ != nullptr) (void)device_->api().cuStreamDestroy(stream_);
}

bool DeviceMemory::synchronize() noexcept {
  if (device_->api().cuStreamSynchronize(stream_) == CUDA_SUCCESS) return true;
  (void)device_->wait(stream_);  // waits again, so that no copy is under way when the error is returned
  return false;
}

void* DeviceMemory::allocate(std::size_t bytes) noexcept {
  const Device::Scope scope(*device_);
  CUdeviceptr address = 0;
  if (device_->api().cuMemAlloc(&address, bytes) != CUDA_SUCCESS) return nullptr;
  auto* base = reinterpret_cast<void*>(address);
  if (fill(base, 0, bytes)) return base;
  (void)device_->api().cuMemFree(address);
  return nullptr;
}

void DeviceMemory::release(void* base, std::size_t) noexcept {
  const Device::Scope scope(*device_);
  (void)device_->api().cuMemFree(address_of(base));
}

bool DeviceMemory::read(std::span<const Transfer> parts) noexcept {
  const Device::Scope scope(*device_);
  const std::lock_guard lock(mutex_);
  // in_rooms() calls piece() and done(). piece() starts a copy of one piece from the device to the page-locked buffer, where the pieces lie
  // in the order of the parts. done() waits for the copies that were started, and then copies the buffer's bytes to the parts'
  // destinations.
  std::size_t part = 0, within = 0;  // destination of the next byte in the buffer: byte `within` of this part
  std::size_t waiting = 0;           // bytes in the buffer that are not at their destinations yet
  const auto piece = [&](std::size_t offset, void*, const void* from, std::size_t n) {
    waiting = offset + n;
    return device_->api().cuMemcpyDtoHAsync(host_.data() + offset, address_of(from), n, stream_) == CUDA_SUCCESS;
  };
  const auto done = [&] {
    if (!synchronize()) return false;
    for (std::size_t at = 0; at < waiting;) {
      if (within == parts[part].bytes) {
        ++part;
        within = 0;
        continue;
      }
      const std::size_t n = std::min(waiting - at, parts[part].bytes - within);
      std::memcpy(static_cast<std::byte*>(parts[part].to) + within, host_.data() + at, n);
      at += n;
      within += n;
    }
    waiting = 0;
    return true;
  };
  const bool good = in_rooms(parts, host_.size(), piece, done);
  if (!good) (void)synchronize();  // waits, so that no copy is under way when the error is returned
  return good;
}

bool DeviceMemory::write(std::span<const Transfer> parts) noexcept {
  const Device::Scope scope(*device_);
  const std::lock_guard lock(mutex_);
  const auto piece = [&](std::size_t offset, void* to, const void* from, std::size_t n) {
    std::memcpy(host_.data() + offset, from, n);
    return device_->api().cuMemcpyHtoDAsync(address_of(to), host_.data() + offset, n, stream_) == CUDA_SUCCESS;
  };
  const bool good = in_rooms(parts, host_.size(), piece, [&] { return synchronize(); });
  if (!good) (void)synchronize();
  return good;
}

bool DeviceMemory::copy(std::span<const Transfer> parts) noexcept {
  const Device::Scope scope(*device_);
  const std::lock_guard lock(mutex_);
  bool good = true;
  for (const Transfer& part : parts) {
    good = good && (part.bytes == 0 || device_->api().cuMemcpyDtoDAsync(address_of(part.to), address_of(part.from),
                                                                        part.bytes, stream_) == CUDA_SUCCESS);
  }
  return synchronize() && good;
}

bool DeviceMemory::fill(void* at, unsigned char byte, std::size_t bytes) noexcept {
  const Device::Scope scope(*device_);
  const std::lock_guard lock(mutex_);
  const bool good = device_->api().cuMemsetD8Async(address_of(at), byte, bytes, stream_) == CUDA_SUCCESS;
  return synchronize() && good;
}

}  // namespace tessera::cuda
