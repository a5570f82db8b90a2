// Philox4x32-10, a counter-based random number generator: the n-th number is a function of (key, n), so replaying it needs no stored
// state. J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), section 3.3.
#pragma once

#include <array>
#include <cstdint>

namespace tessera::sampling {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;  // the golden ratio, and sqrt(3) - 1 below
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Returns a random number, uniform in [0, 1), a multiple of 2^-53. Equal arguments return the same number. purpose: distinguishes the
// numbers that are drawn at one position. stream: distinguishes sequences with the same seed.
[[nodiscard]] constexpr double philox_uniform(std::uint64_t seed, std::uint64_t position, std::uint32_t purpose,
                                              std::uint32_t stream) noexcept {
  const PhiloxCounter out =
      philox4x32_10({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), purpose, stream},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{out[0]} << 32) | out[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tessera::sampling
