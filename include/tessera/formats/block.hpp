// What the block formats share: reading and writing the numbers inside a block, and rounding without undefined
// behaviour. Blocks are little-endian, as are the machines that tessera runs on.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/core/float16.hpp>

namespace tessera::formats::detail {

static_assert(std::endian::native == std::endian::little);

// A block's integers, one a byte: loops over them vectorise at every instruction set.
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

// Value i from the low half of byte i, value i + 16 from the high half.
inline void unpack_nibbles(const std::byte* at, Quants<32>& q) noexcept {
  for (std::size_t i = 0; i < 16; ++i) q[i] = static_cast<std::uint8_t>(at[i]) & 15u;
  for (std::size_t i = 0; i < 16; ++i) q[16 + i] = static_cast<std::uint8_t>(at[i]) >> 4;
}

inline void pack_nibbles(const Quants<32>& q, std::byte* at) noexcept {
  for (std::size_t i = 0; i < 16; ++i) at[i] = static_cast<std::byte>((q[i] & 15) | ((q[16 + i] & 15) << 4));
}

// Adds 16 to value i where bit i of the 32 bits is set. Eight bits at a time become eight bytes of a 64-bit number: a
// multiplication copies the byte, a mask keeps bit k in byte k, an addition moves it to the byte's top.
inline void unpack_fifth_bits(const std::byte* at, Quants<32>& q) noexcept {
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t copies = static_cast<std::uint64_t>(at[i]) * 0x0101010101010101u;
    const std::uint64_t spread = (copies & 0x8040201008040201u) + 0x7f7f7f7f7f7f7f7fu;
    const std::uint64_t sixteens = (spread >> 3) & 0x1010101010101010u;
    std::uint64_t eight = 0;
    std::memcpy(&eight, q.data() + 8 * i, 8);
    eight |= sixteens;
    std::memcpy(q.data() + 8 * i, &eight, 8);
  }
}

inline void pack_fifth_bits(const Quants<32>& q, std::byte* at) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(q[i] >> 4) << i;
  std::memcpy(at, &bits, sizeof bits);
}

[[nodiscard]] constexpr float magnitude(float value) noexcept { return value < 0 ? -value : value; }

// What an encoder makes of a value that no block can hold: NaN becomes 0, an infinity the largest finite number.
[[nodiscard]] constexpr float finite(float value) noexcept {
  constexpr float kLargest = 0x1.fffffep127f;
  if (value > kLargest) return kLargest;
  if (value < -kLargest) return -kLargest;
  return value == value ? value : 0.0f;
}

// The first value of largest size, with its sign.
[[nodiscard]] inline float largest(const float* values, std::size_t n) noexcept {
  float chosen = finite(values[0]);
  for (std::size_t i = 1; i < n; ++i) {
    const float value = finite(values[i]);
    if (magnitude(value) > magnitude(chosen)) chosen = value;
  }
  return chosen;
}

struct Range {
  float min, max;
};

[[nodiscard]] inline Range range_of(const float* values, std::size_t n) noexcept {
  Range range{finite(values[0]), finite(values[0])};
  for (std::size_t i = 1; i < n; ++i) {
    const float value = finite(values[i]);
    if (value < range.min) range.min = value;
    if (value > range.max) range.max = value;
  }
  return range;
}

// A scale or minimum that a half can hold: out of range it saturates, so that no block decodes to infinity or NaN.
[[nodiscard]] constexpr float half_range(float value) noexcept {
  constexpr float kLargest = 65504.0f;
  if (value > kLargest) return kLargest;
  if (value < -kLargest) return -kLargest;
  return value;
}

// 1 / d, and 0 for 0.
[[nodiscard]] constexpr float reciprocal(float d) noexcept { return d != 0 ? 1.0f / d : 0.0f; }

// a * b rounded to f32, whatever the host's -ffp-contract: the compiler cannot fuse it with an addition that follows.
// Encoders need it to give the same blocks in every build.
[[nodiscard]] inline float product(float a, float b) noexcept {
  float rounded = a * b;
#if defined(__x86_64__)
  __asm__("" : "+x"(rounded));
#elif defined(__aarch64__)
  __asm__("" : "+w"(rounded));
#else
  volatile float kept = rounded;
  rounded = kept;
#endif
  return rounded;
}

// Toward zero, limited to [low, high]; NaN gives low. (The bare conversion is undefined outside int's range.)
[[nodiscard]] constexpr int truncate(float value, int low, int high) noexcept {
  const float from = static_cast<float>(low), to = static_cast<float>(high);
  if (!(value > from)) return low;
  return value < to ? static_cast<int>(value) : high;
}

// The same from 0 to `high`, as a quant.
[[nodiscard]] constexpr std::uint8_t quant(float value, int high) noexcept {
  return static_cast<std::uint8_t>(truncate(value, 0, high));
}

// To nearest, halves away from zero (C's roundf), limited to [low, high]; NaN gives low.
[[nodiscard]] constexpr int round_away(float value, int low, int high) noexcept {
  const int whole = truncate(value, low, high);
  const float rest = value - static_cast<float>(whole);  // exact
  if (rest >= 0.5f) return whole < high ? whole + 1 : high;
  if (rest <= -0.5f) return whole > low ? whole - 1 : low;
  return whole;
}

}  // namespace tessera::formats::detail
