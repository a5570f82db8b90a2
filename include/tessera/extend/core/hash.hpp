// A 128-bit hash value. tessera computes hashes by XXH3-128.
#pragma once

#include <cstdint>

namespace tessera {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const noexcept = default;
};

}  // namespace tessera
