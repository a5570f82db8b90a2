// The grids in which the IQ1, IQ2 and IQ3 formats look up their values, expanded from codebooks.inc to one byte per value. Also helpers for
// the grids' entries: signs, and the offset of 128 that values of opened blocks have.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::formats::detail {

// Grids whose entries have eight values. In the grids of IQ2 a value is 8, 25 or 43. In kGridIq1 it is 8 times -1, 0 or 1, plus 128.
extern const std::array<std::uint64_t, 256> kGridIq2xxs;
extern const std::array<std::uint64_t, 512> kGridIq2xs;
extern const std::array<std::uint64_t, 1024> kGridIq2s;
extern const std::array<std::uint64_t, 2048> kGridIq1;
// Grids whose entries have four values. In kGridIq3xxs a value is 4, 12, .. 52 or 62, in kGridIq3s an odd number up to 15.
extern const std::array<std::uint32_t, 256> kGridIq3xxs;
extern const std::array<std::uint32_t, 512> kGridIq3s;

// Entry s expands eight sign bits to eight bytes: byte i is 255 if bit i of s is set, else 0.
extern const std::array<std::uint64_t, 256> kSignMasks;

// Returns the signs of eight values as bits. `seven` has the seven bits that are stored; the eighth makes the number of set bits even.
[[nodiscard]] constexpr unsigned even_signs(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

// Returns eight values, negated where the bit of `signs` is set, plus 128 each. Precondition: each value is from 1 to 127.
[[nodiscard]] inline std::uint64_t signed_values(std::uint64_t values, unsigned signs) noexcept {
  const std::uint64_t mask = kSignMasks[signs];
  return ((values ^ mask) + (mask & 0x0101010101010101u)) ^ 0x8080808080808080u;  // no byte carries into the next, since no value is 0
}

// Joins two entries of four values to an entry of eight values.
[[nodiscard]] constexpr std::uint64_t both(std::uint32_t low, std::uint32_t high) noexcept {
  return low | std::uint64_t{high} << 32;
}

inline void store_eight(std::uint8_t* to, std::uint64_t values) noexcept { std::memcpy(to, &values, sizeof values); }

}  // namespace tessera::formats::detail
