// The exchange of bytes between the ranks that compute one model together. There is one operation, and it adds nothing up: sums are never
// divided among ranks, so N ranks give the bits of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// One rank's end. All ranks make the same calls in the same order; a call returns when the rank's part of it is done.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t ranks() const noexcept = 0;

  // Gives each rank the bytes of all ranks: parts[i] gets the bytes of rank i, and must have their size. `mine` has the size of
  // parts[rank()], which is not written. Errors: cancelled, a rank has called stop(); device_error, a rank is gone.
  virtual Status gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> parts) noexcept = 0;
  // Makes the calls of this step fail, on all ranks.
  virtual void stop() noexcept = 0;
};

}  // namespace tessera::detail
