// Helpers of the block formats: reading and writing the numbers inside a block, and rounding without undefined behaviour. Blocks are
// little-endian, like the machines that tessera runs on.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/float16.hpp"

namespace tessera::formats::detail {

static_assert(std::endian::native == std::endian::little);

// A block's integers, one byte each, so that compilers vectorise loops over them for every instruction set.
template <std::size_t N>
using Quants = std::array<std::uint8_t, N>;

[[nodiscard]] inline std::uint16_t load_u16(const std::byte* at) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

inline void store_u16(std::byte* at, std::uint16_t bits) noexcept { std::memcpy(at, &bits, sizeof bits); }

[[nodiscard]] inline float load_f16(const std::byte* at) noexcept { return f16_to_f32(load_u16(at)); }

inline void store_f16(std::byte* at, float value) noexcept { store_u16(at, f32_to_f16(value)); }

// Unpacks value i from the low half of byte i, and value i + 16 from the high half.
inline void unpack_nibbles(const std::byte* at, Quants<32>& q) noexcept {
  for (std::size_t i = 0; i < 16; ++i) q[i] = static_cast<std::uint8_t>(at[i]) & 15u;
  for (std::size_t i = 0; i < 16; ++i) q[16 + i] = static_cast<std::uint8_t>(at[i]) >> 4;
}

inline void pack_nibbles(const Quants<32>& q, std::byte* at) noexcept {
  for (std::size_t i = 0; i < 16; ++i) at[i] = static_cast<std::byte>((q[i] & 15) | ((q[16 + i] & 15) << 4));
}

// Adds 16 to value i where bit i of the 32 bits is set. Uses a table of masks, because SSE cannot shift each lane by a different number.
inline void unpack_fifth_bits(const std::byte* at, Quants<32>& q) noexcept {
  static constexpr auto kMask = [] {
    std::array<std::uint32_t, 32> mask{};
    for (std::size_t i = 0; i < 32; ++i) mask[i] = std::uint32_t{1} << i;
    return mask;
  }();
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(q[i] | ((bits & kMask[i]) != 0 ? 16 : 0));
}

inline void pack_fifth_bits(const Quants<32>& q, std::byte* at) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(q[i] >> 4) << i;
  std::memcpy(at, &bits, sizeof bits);
}

// The helpers below compare floats by comparing their bits as integers. (For floats that are not negative, both have the same order.)
// Reason: compilers vectorise the minimum of integers, but not comparisons of floats, because these might trap.

[[nodiscard]] constexpr float magnitude(float value) noexcept {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
}

// Returns the value limited to [-top, top]; 0 for NaN. A block can store every result.
[[nodiscard]] constexpr float finite(float value, float top = 0x1.fffffep127f) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), size = bits & 0x7fffffffu;
  const std::uint32_t limited = std::min(size, std::bit_cast<std::uint32_t>(top)) | (bits & 0x80000000u);
  return std::bit_cast<float>(limited & (static_cast<std::uint32_t>(size > 0x7f800000u) - 1u));
}

// Returns the value limited to [0, top]. For NaN returns one of the ends.
[[nodiscard]] constexpr float limit(float value, float top) noexcept {
  const std::int32_t bits = std::bit_cast<std::int32_t>(value);
  return std::bit_cast<float>(std::min(std::max(bits, 0), std::bit_cast<std::int32_t>(top)));
}

// Returns the value rounded down and limited to 0..high. (The bare conversion is undefined for values that an integer cannot hold.)
[[nodiscard]] constexpr std::uint8_t quant(float value, int high) noexcept {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(limit(value, static_cast<float>(high))));
}

// Returns the nearest integer, halves rounded away from zero (as C's roundf), limited to [-high, high].
[[nodiscard]] constexpr std::int32_t round_away(float value, int high) noexcept {
  const float size = limit(magnitude(value), static_cast<float>(high));
  const std::int32_t whole = static_cast<std::int32_t>(size);
  const std::int32_t rounded = whole + (size - static_cast<float>(whole) >= 0.5f ? 1 : 0);  // the difference is exact
  const std::int32_t sign = std::bit_cast<std::int32_t>(value) >> 31;
  return (rounded ^ sign) - sign;
}

// Returns the first value of the largest magnitude, with its sign.
template <std::size_t N>
[[nodiscard]] inline float largest(const float (&values)[N]) noexcept {
  std::uint32_t top = 0;
  for (std::size_t i = 0; i < N; ++i) top = std::max(top, std::bit_cast<std::uint32_t>(magnitude(values[i])));
  for (std::size_t i = 0; i < N; ++i)
    if (std::bit_cast<std::uint32_t>(magnitude(values[i])) == top) return values[i];
  return 0;  // not reached
}

struct Range {
  float min, max;
};

template <std::size_t N>
[[nodiscard]] inline Range range_of(const float (&values)[N]) noexcept {
  Range range{values[0], values[0]};
  for (std::size_t i = 1; i < N; ++i) {
    range.min = std::min(range.min, values[i]);
    range.max = std::max(range.max, values[i]);
  }
  return range;
}

// Returns a scale or minimum limited to the range of f16, so that no block decodes to infinity or NaN.
[[nodiscard]] constexpr float half_range(float value) noexcept { return finite(value, 65504.0f); }

// Returns 1 / d, or 0 if d is 0.
[[nodiscard]] constexpr float reciprocal(float d) noexcept { return d != 0 ? 1.0f / d : 0.0f; }

// Copies a block's N values to x. NaN becomes 0, and infinity the largest finite float of its sign (finite()).
template <std::size_t N>
inline void load_finite(const float* values, float (&x)[N]) noexcept {
  for (std::size_t i = 0; i < N; ++i) x[i] = finite(values[i]);
}

// Computes x = (x - origin) * factor, with each operation rounded to f32. The empty asm hides the products from the compiler. Otherwise it
// could fuse a product with an addition that follows, depending on -ffp-contract. So the encoders that use this function write the same
// blocks in every build.
template <std::size_t N>
inline void rescale(float (&x)[N], float origin, float factor) noexcept {
  for (std::size_t i = 0; i < N; ++i) x[i] = (x[i] - origin) * factor;
  __asm__("" : "+m"(x));
}

}  // namespace tessera::formats::detail
