// Memory for the tables that a step uploads, in two copies: one of the host, one of the device. The host fills its copy, one table after
// another; the device reads each table at the same offset of its own copy. reset() begins a new step; the device must have finished the
// last one. If a step needs more memory than the arena has, the arena adds a block and keeps it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/guard.hpp"
#include "cuda/driver/buffers.hpp"

namespace tessera::cuda {

class StepArena {
 public:
  // Allocates the first block: `block_bytes` bytes of the host's memory, and the same number of bytes of the device's memory.
  Status init(std::shared_ptr<const Device> device, std::size_t block_bytes);
  void reset() noexcept;

  // A table of n values. Write them to span(); after the next flush() kernels read them at `device`.
  template <class T>
  struct Table {
    T* host = nullptr;
    const T* device = nullptr;
    std::size_t size = 0;
    [[nodiscard]] std::span<T> span() const noexcept { return {host, size}; }
  };
  template <class T>
  Result<Table<T>> add(std::size_t n) {
    TESSERA_TRY(const Place place, take(n * sizeof(T)));
    return Table<T>{
        .host = reinterpret_cast<T*>(place.host), .device = reinterpret_cast<const T*>(place.device), .size = n};
  }
  template <class T>
  Result<const T*> add(std::span<const T> values) {
    TESSERA_TRY(const Table<T> table, add<T>(values.size()));
    if (!values.empty()) std::memcpy(table.host, values.data(), values.size_bytes());
    return table.device;
  }
  // Starts the copy to the device of all tables added since the last flush().
  Status flush();

  // Returns the bytes that a table of n bytes takes in the arena.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

 private:
  struct Area {
    PinnedBuffer host;
    DeviceBuffer device;
    std::size_t used = 0, flushed = 0;
  };
  struct Place {
    std::byte* host;
    const std::byte* device;
  };
  Result<Place> take(std::size_t bytes);
  Status add_block(std::size_t bytes);

  std::shared_ptr<const Device> device_;
  std::size_t block_bytes_ = 0;
  std::vector<Area> blocks_;
  std::size_t current_ = 0;
};

}  // namespace tessera::cuda
