// Compute hashes of bytes that come piece by piece: XXH3 with 128 and with 64 bits (xxHash). XXH_INLINE_ALL compiles xxHash into this file,
// so there is nothing to link, and no symbol that could clash with the host's own xxHash.
#pragma once

#include <cstddef>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <tessera/extend/core/hash.hpp>

namespace tessera::detail {

class Hasher128 {
 public:
  Hasher128() noexcept { XXH3_128bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) noexcept { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  [[nodiscard]] Hash128 digest() const noexcept {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {.low = hash.low64, .high = hash.high64};
  }

 private:
  XXH3_state_t state_;
};

class Hasher64 {
 public:
  Hasher64() noexcept { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) noexcept { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t digest() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace tessera::detail
