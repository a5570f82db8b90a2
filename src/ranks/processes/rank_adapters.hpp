// The adapters that rank 0 has given to a rank in another process.
#pragma once

#include <cstddef>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/hash.hpp>

#include "backend/adapter_backend.hpp"

namespace tessera::detail {

// Orders adapters by their content.
struct ByContent {
  bool operator()(const Hash128& a, const Hash128& b) const noexcept { return a.high != b.high ? a.high < b.high : a.low < b.low; }
};

class RankAdapters {
 public:
  virtual ~RankAdapters() = default;
  // Takes one change of an adapter (MessageKind::adapter). Errors: device_error, the bytes are not a valid message; out_of_memory;
  // unsupported.
  virtual Status take(std::span<const std::byte> message) = 0;
  virtual void forget(const Hash128& content) noexcept = 0;
  // Returns an adapter's changes for this rank's weights; nullptr if rank 0 has not given the adapter, or has had it dropped.
  [[nodiscard]] virtual const backend::AdapterWeights* find(const Hash128& content) const noexcept = 0;
};

}  // namespace tessera::detail
