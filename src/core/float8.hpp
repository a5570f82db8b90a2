// FP8 of four bits of exponent and three of fraction, E4M3 (Micikevicius et al. 2022; the OCP's 8-bit formats): numbers up to 448,
// no infinity. Rounding is to nearest, ties to even; a larger number becomes 448 with its sign.
#pragma once

#include <bit>
#include <cstdint>

#include "core/float16.hpp"

namespace tessera {

inline constexpr float kLargestE4M3 = 448.0f;

// Returns 1/256 of the value as the bits of an F16. Sign and value bits keep their order: the fraction gets seven zeros after its three
// bits, and the factor 1/256 comes from the other exponent bias (15 instead of 7).
[[nodiscard]] constexpr std::uint16_t e4m3_as_f16(std::uint8_t value) noexcept {
  return static_cast<std::uint16_t>((value & 0x80u) << 8 | (value & 0x7fu) << 7);
}
[[nodiscard]] constexpr float e4m3_to_f32(std::uint8_t value) noexcept { return f16_to_f32(e4m3_as_f16(value)) * 256.0f; }

// Returns the nearest FP8 number. Precondition: the value is not NaN.
[[nodiscard]] constexpr std::uint8_t f32_to_e4m3(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-6 the result is a multiple of 2^-9, found by letting 2^14 + x round to its last bit.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const std::uint32_t normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  const std::uint32_t rounded = magnitude < 0x3c800000u ? small : normal;
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (magnitude > 0x43e00000u ? 0x7eu : rounded));
}

}  // namespace tessera
