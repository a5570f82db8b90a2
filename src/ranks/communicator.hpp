// The exchange of bytes between the ranks that compute one model together. The only operation is gather(): each rank gets the bytes of all
// ranks. No operation adds numbers of several ranks: each sum is computed by one rank, so any number of ranks computes the same bits as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// One rank's end of the exchange. All ranks must make the same calls in the same order. A call returns when this rank has the bytes that it
// needs, and other ranks no longer read its `mine`; other ranks may still be in the call.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t ranks() const noexcept = 0;

  // Gives each rank the bytes of all ranks. `mine`: the bytes of this rank. The bytes of rank i are written to parts[i], which must have
  // exactly their size. Exception: parts[rank()] is not written; it has the size of `mine`. Errors: cancelled, a rank has called stop();
  // device_error, a rank is gone.
  virtual Status gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> parts) noexcept = 0;
  // Makes the calls of this step fail, on all ranks.
  virtual void stop() noexcept = 0;
};

}  // namespace tessera::detail
