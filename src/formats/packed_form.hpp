// How kernels hold weights. Formats are many, packed forms few: a format says which form it goes into and takes its
// blocks apart, and every kernel of every instruction set that knows the form then computes with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::formats {

enum class PackedForm : std::uint8_t {
  f32,
  f16,
  bf16,
  // 32 integers of 4, 5 or 8 bits under a scale, half their range subtracted; "min": from 0 up, with a minimum instead.
  block32_4,
  block32_4_min,
  block32_5,
  block32_5_min,
  block32_8,
  // 256 integers; eight sub-blocks with a 6-bit scale and minimum each, or (6 bits) sixteen with a signed 8-bit scale.
  block256_4,
  block256_5,
  block256_6,
  count
};
inline constexpr std::size_t kPackedForms = static_cast<std::size_t>(PackedForm::count);

// A block taken apart: value = d * (q - offset), offset being half the range of q, or d * q + m.
struct Block32 {
  std::array<std::uint8_t, 32> q;
  std::uint16_t d, m;  // f16
};

// A superblock taken apart. 4 and 5 bits: value = (d * scale) * q - (dmin * min), `scales` the 12 bytes that Q4_K and
// Q5_K have (MinScales in k_quants.hpp). 6 bits: value = (d * scale) * (q - 32), `scales` 16 signed bytes.
struct Block256 {
  std::array<std::uint8_t, 256> q;
  std::array<std::uint8_t, 16> scales;
  std::uint16_t d, dmin;  // f16
};

}  // namespace tessera::formats
