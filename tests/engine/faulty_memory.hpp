// system_memory() behind the same counter as operator new: its allocations are counted, and fail, with the others.
#pragma once

#include "counted_new.hpp"

#include <atomic>
#include <cstddef>

#include <tessera/extend/core/memory.hpp>

namespace tessera::test {

class FaultyMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    return took(granted() ? below_.allocate(bytes) : nullptr, bytes);
  }
  void release(void* base, std::size_t bytes) noexcept override {
    gave(bytes);
    below_.release(base, bytes);
  }
  void* claim(std::size_t bytes) noexcept override { return took(granted() ? below_.claim(bytes) : nullptr, bytes); }
  bool populate(void* base, std::size_t size, std::size_t offset, std::size_t bytes) noexcept override {
    return granted() && below_.populate(base, size, offset, bytes);
  }
  std::size_t granularity() const noexcept override { return below_.granularity(); }
  void* reserve(std::size_t bytes) noexcept override { return granted() ? below_.reserve(bytes) : nullptr; }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (!granted() || !below_.commit(base, offset, bytes)) return false;
    live += bytes;
    return true;
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    gave(bytes);
    below_.decommit(base, offset, bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override { below_.unreserve(base, bytes); }

  std::atomic<std::size_t> live = 0;  // bytes

 private:
  static bool granted() noexcept { return counted::granted(); }
  void* took(void* block, std::size_t bytes) noexcept {
    if (block != nullptr) live += bytes;
    return block;
  }
  void gave(std::size_t bytes) noexcept { live -= bytes; }

  Memory& below_ = system_memory();
};

}  // namespace tessera::test
