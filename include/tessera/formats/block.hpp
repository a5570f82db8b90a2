// What the block formats share: reading and writing the numbers inside a block, and rounding without undefined
// behaviour. Blocks are little-endian, as are the machines that tessera runs on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/core/float16.hpp>

namespace tessera::formats::detail {

static_assert(std::endian::native == std::endian::little);

[[nodiscard]] inline std::uint16_t load_u16(const std::byte* at) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

inline void store_u16(std::byte* at, std::uint16_t bits) noexcept { std::memcpy(at, &bits, sizeof bits); }

[[nodiscard]] inline float load_f16(const std::byte* at) noexcept { return f16_to_f32(load_u16(at)); }

inline void store_f16(std::byte* at, float value) noexcept { store_u16(at, f32_to_f16(value)); }

[[nodiscard]] constexpr float magnitude(float value) noexcept { return value < 0 ? -value : value; }

// What an encoder makes of a value that no block can hold: NaN becomes 0, an infinity the largest finite number.
[[nodiscard]] constexpr float finite(float value) noexcept {
  constexpr float kLargest = 0x1.fffffep127f;
  if (value > kLargest) return kLargest;
  if (value < -kLargest) return -kLargest;
  return value == value ? value : 0.0f;
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

// To nearest, halves away from zero (C's roundf), limited to [low, high]; NaN gives low.
[[nodiscard]] constexpr int round_away(float value, int low, int high) noexcept {
  const int whole = truncate(value, low, high);
  const float rest = value - static_cast<float>(whole);  // exact
  if (rest >= 0.5f) return whole < high ? whole + 1 : high;
  if (rest <= -0.5f) return whole > low ? whole - 1 : low;
  return whole;
}

}  // namespace tessera::formats::detail
