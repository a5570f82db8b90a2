#include "cuda/step_arena.hpp"

#include <algorithm>

namespace tessera::cuda {

Status StepArena::init(std::shared_ptr<const Device> device, std::size_t block_bytes) {
  device_ = std::move(device);
  block_bytes_ = block_bytes;
  return add_block(block_bytes);
}

void StepArena::reset() noexcept {
  for (Area& block : blocks_) block.used = block.flushed = 0;
  current_ = 0;
}

Status StepArena::add_block(std::size_t bytes) {
  Area block;
  TESSERA_TRY(block.host, PinnedBuffer::allocate(device_, bytes, "a step's tables"));
  TESSERA_TRY(block.device, DeviceBuffer::allocate(device_, bytes, "a step's tables"));
  blocks_.push_back(std::move(block));
  return {};
}

Result<StepArena::Place> StepArena::take(std::size_t bytes) {
  const std::size_t need = padded(bytes);
  while (current_ < blocks_.size() && need > blocks_[current_].host.size() - blocks_[current_].used) ++current_;
  if (current_ == blocks_.size()) TESSERA_TRY_STATUS(add_block(std::max(need, block_bytes_)));
  Area& block = blocks_[current_];
  const std::size_t offset = block.used;
  block.used += need;
  return Place{.host = block.host.data() + offset, .device = block.device.data() + offset};
}

Status StepArena::flush() {
  for (Area& block : blocks_) {
    if (block.flushed == block.used) continue;
    const std::size_t from = block.flushed;
    block.flushed = block.used;
    TESSERA_TRY_STATUS(device_->to_device(block.device.address() + from, block.host.data() + from, block.used - from));
  }
  return {};
}

}  // namespace tessera::cuda
