// The grids that the IQ1, IQ2 and IQ3 formats look their values up in, expanded from codebooks.inc to a byte a value, and
// what is done with entries: signs, and the offset of 128 that open blocks have.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::formats::detail {

// Eight values an entry: 8, 25 or 43. (IQ1: 8 times -1, 0 or 1, plus 128.)
extern const std::array<std::uint64_t, 256> kGridIq2xxs;
extern const std::array<std::uint64_t, 512> kGridIq2xs;
extern const std::array<std::uint64_t, 1024> kGridIq2s;
extern const std::array<std::uint64_t, 2048> kGridIq1;
// Four values an entry: 4, 12, .. 52, 62; and the odd numbers up to 15.
extern const std::array<std::uint32_t, 256> kGridIq3xxs;
extern const std::array<std::uint32_t, 512> kGridIq3s;

// Byte i is 255 where bit i of the index is set.
extern const std::array<std::uint64_t, 256> kSignMasks;

// Signs of eight values in seven bits: their number is even.
[[nodiscard]] constexpr unsigned even_signs(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

// Eight values from 1 to 127, negative where the bit of `signs` is set, plus 128 each.
[[nodiscard]] inline std::uint64_t signed_values(std::uint64_t values, unsigned signs) noexcept {
  const std::uint64_t mask = kSignMasks[signs];
  return ((values ^ mask) + (mask & 0x0101010101010101u)) ^ 0x8080808080808080u;  // no byte carries, as none is 0
}

// Two entries of four values as one of eight.
[[nodiscard]] constexpr std::uint64_t both(std::uint32_t low, std::uint32_t high) noexcept {
  return low | std::uint64_t{high} << 32;
}

inline void store_eight(std::uint8_t* to, std::uint64_t values) noexcept { std::memcpy(to, &values, sizeof values); }

}  // namespace tessera::formats::detail
