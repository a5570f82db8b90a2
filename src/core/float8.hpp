// Conversions of FP8 in the form E4M3: four bits of exponent and three of fraction (Micikevicius et al. 2022; the OCP's 8-bit formats). Its
// numbers go up to 448, and it has no infinity. Rounding is to nearest, ties to even. A number beyond 448 becomes 448 with its sign.
#pragma once

#include <bit>
#include <cstdint>

#include "core/float16.hpp"

namespace tessera {

inline constexpr float kLargestE4M3 = 448.0f;

// Returns an FP8 number divided by 256, as the bits of an F16. No arithmetic is needed: sign, exponent and fraction keep their order, and
// the fraction gets seven zeros at its end. The division by 256 comes from the exponents' biases (7 in FP8, 15 in F16).
[[nodiscard]] constexpr std::uint16_t e4m3_as_f16(std::uint8_t value) noexcept {
  return static_cast<std::uint16_t>((value & 0x80u) << 8 | (value & 0x7fu) << 7);
}
[[nodiscard]] constexpr float e4m3_to_f32(std::uint8_t value) noexcept { return f16_to_f32(e4m3_as_f16(value)) * 256.0f; }

// Returns the nearest FP8 number. Precondition: the value is not NaN.
[[nodiscard]] constexpr std::uint8_t f32_to_e4m3(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Results below 2^-6 are multiples of 2^-9. The last bit of 2^14 + x is worth 2^-9, so the addition does the rounding.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const std::uint32_t normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  const std::uint32_t rounded = magnitude < 0x3c800000u ? small : normal;
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (magnitude > 0x43e00000u ? 0x7eu : rounded));
}

}  // namespace tessera
