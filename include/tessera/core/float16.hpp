// IEEE binary16 and bfloat16 conversions in plain integer and f32 arithmetic, so that every machine gives the same bits
// and loops over them vectorise. Rounding is to nearest, ties to even; NaN stays NaN (made quiet).
#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

[[nodiscard]] constexpr float f16_to_f32(std::uint16_t half) noexcept {
  // Shift exponent and mantissa into place, then let one exact multiplication by 2^112 rebias the exponent: it turns
  // f16 denormals into f32 normals without a branch.
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(scaled);
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinities and NaN keep their mantissa
  const std::uint32_t quiet = (magnitude & 0x007fffffu) != 0 ? 0x00400000u : 0u;
  return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? (special | quiet) : finite));
}

[[nodiscard]] constexpr std::uint16_t f32_to_f16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above: infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, found by letting 0.5 + x round to its last bit
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
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
