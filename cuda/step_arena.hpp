// What a step uploads: tables that the host fills one after another and the device reads at the same offsets. Reset at
// the beginning of a step, when the device has done with the one before. A step that needs more than there is room for
// takes another block, which stays.
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
  // `block_bytes`: of host memory and of the device's, each.
  Status init(std::shared_ptr<const Device> device, std::size_t block_bytes);
  void reset() noexcept;

  // Room for n values: fill what span() gives; the device finds them at `device` after the next flush().
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
  // Starts the copies of what was added since the last one.
  Status flush();

  // What n bytes take.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

 private:
  struct Block {
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
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
};

}  // namespace tessera::cuda
