// Helpers of the formats whose blocks kernels keep as they are in the file (packed_form.hpp): decoding of opened blocks, and for formats of
// 4 bits the table of the 16 values that the 4 bits can stand for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"

namespace tessera::formats::detail {

// The 16 integers of IQ4_NL and IQ4_XS, each plus 128.
inline constexpr std::array<std::uint8_t, 16> kNonLinear = {1,   24,  45,  63,  79,  93,  106, 118,
                                                            129, 141, 153, 166, 181, 197, 217, 241};

// The 16 numbers of E2M1 (a sign, two bits of exponent, one of fraction), times 2, plus 128. Times 2, the numbers are integers: 0, 1, 2, 3,
// 4, 6, 8, 12 and the same negated (-0 counts as 0). With 128 added, they are the unsigned bytes of opened blocks (OpenBlock::q).
inline constexpr std::array<std::uint8_t, 16> kE2M1 = {128, 129, 130, 131, 132, 134, 136, 140,
                                                       128, 127, 126, 125, 124, 122, 120, 116};

// Looks up `n` bytes of two nibbles each. The values of the low nibbles come first, then those of the high nibbles.
template <std::size_t n>
inline void look_up(const std::array<std::uint8_t, 16>& table, const std::byte* at, std::uint8_t* q) noexcept {
  for (std::size_t i = 0; i < n; ++i) q[i] = table[static_cast<std::uint8_t>(at[i]) & 15u];
  for (std::size_t i = 0; i < n; ++i) q[n + i] = table[static_cast<std::uint8_t>(at[i]) >> 4];
}

[[nodiscard]] inline std::uint32_t load_u32(const std::byte* at) noexcept {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

[[nodiscard]] inline unsigned byte_at(const std::byte* at) noexcept { return static_cast<unsigned>(*at); }

template <std::size_t n>
inline void decode(const OpenBlock& open, float* values) noexcept {
  for (std::size_t i = 0; i < n; ++i) values[i] = open.d[i / 16] * static_cast<float>(open.q[i] - 128);
}

template <bool has_min>
inline void decode(const OpenSuperblock& open, float* values) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    const float scale = open.d * static_cast<float>(open.scale[j]);
    const float min = has_min ? open.dmin * static_cast<float>(open.min[j]) : 0.0f;
    for (std::size_t i = 16 * j; i < 16 * j + 16; ++i) {
      const float product = scale * static_cast<float>(open.q[i] - 128);
      values[i] = has_min ? product - min : product;
    }
  }
}

}  // namespace tessera::formats::detail
