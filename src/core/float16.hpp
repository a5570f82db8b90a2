// Converts between f32 and the 16-bit floats: IEEE binary16 (F16) and bfloat16. The functions use plain integer and f32 arithmetic, so that
// every machine gives the same bits, and have no branches, so that compilers vectorise loops over them. Rounding is to nearest, ties to
// even. NaN stays NaN, and becomes quiet.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

[[nodiscard]] constexpr float f16_to_f32(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const std::uint32_t normal = magnitude + 0x38000000u;  // rebias the exponent by 127 - 15
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const std::uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0u;
  // Denormal half: its value is 2^-14 * (1 + m) - 2^-14, where m is its fraction. In this form no operand is a denormal float, which would
  // be slow.
  const std::uint32_t tiny = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + 0x38800000u) - 0x1p-14f);
  const std::uint32_t is_tiny = 0u - static_cast<std::uint32_t>(magnitude < 0x00800000u);
  return std::bit_cast<float>(sign | (tiny & is_tiny) | (normal & ~is_tiny) | special | quiet);
}

[[nodiscard]] constexpr std::uint16_t f32_to_f16(float value) noexcept {
  const auto mask = [](bool condition) { return 0u - static_cast<std::uint32_t>(condition); };
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  // Results below 2^-14 are multiples of 2^-24. The last bit of 0.5 + x is worth 2^-24, so the addition does the rounding.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t is_small = mask(magnitude < 0x38800000u);
  const std::uint32_t is_infinite = mask(magnitude >= 0x477ff000u);  // 65520 and above
  const std::uint32_t is_nan = mask(magnitude > 0x7f800000u);
  std::uint32_t result = (small & is_small) | (normal & ~is_small);
  result = (result & ~is_infinite) | (0x7c00u & is_infinite);
  result = (result & ~is_nan) | (nan & is_nan);
  return static_cast<std::uint16_t>(sign | result);
}

[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace tessera
