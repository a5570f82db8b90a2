// The forms in which kernels have weights in memory. There are many formats and few packed forms: each format names the form that it uses,
// and takes its blocks apart into the parts of the form. So a kernel that is written for a form multiplies by the weights of all formats
// that use the form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::formats {

enum class PackedForm : std::uint8_t {
  f32,
  f16,
  bf16,
  // Blocks of 32 integers of 4, 5 or 8 bits (the number in the name) with one scale. Without "min" in the name: weight = scale * (integer -
  // half of the integers' range). With "min": weight = scale * integer + minimum, where the block has the minimum.
  block32_4,
  block32_4_min,
  block32_5,
  block32_5_min,
  block32_8,
  // Superblocks of 256 integers of 4, 5 or 6 bits (the second number in the name). With 4 or 5 bits a superblock has eight sub-blocks of
  // 32, each with a scale and a minimum of 6 bits. With 6 bits it has sixteen sub-blocks of 16, each with a signed scale of 8 bits.
  block256_4,
  block256_5,
  block256_6,
  // The file's own blocks, unchanged. A kernel opens the blocks of 16 outputs at a time into OpenBlock or OpenSuperblock, and multiplies
  // all rows of activations by the result. Each format has a form of its own, because its blocks are opened in another way.
  kept_iq4_nl,
  kept_mxfp4,
  kept_nvfp4,
  kept_iq4_xs,
  kept_q3_k,
  kept_q2_k,
  kept_iq3_s,
  kept_iq3_xxs,
  kept_iq2_s,
  kept_iq2_xs,
  kept_iq2_xxs,
  kept_iq1_m,
  kept_iq1_s,
  kept_tq2_0,
  kept_tq1_0,
  count
};
inline constexpr std::size_t kPackedForms = static_cast<std::size_t>(PackedForm::count);

[[nodiscard, gnu::always_inline]] constexpr bool keeps_blocks(PackedForm form) noexcept {
  return form >= PackedForm::kept_iq4_nl && form < PackedForm::count;
}

// A block taken apart. value = d * (q - offset), where offset is half the range of q; in forms with a minimum, value = d * q + m.
struct Block32 {
  std::array<std::uint8_t, 32> q;
  std::uint16_t d, m;  // f16
};

// A superblock taken apart, with the integers q. If q has 4 or 5 bits: value = (d * scale) * q - (dmin * min), where `scales` are the 12
// bytes of Q4_K and Q5_K that contain scales and minima (MinScales in k_quants.hpp). If q has 6 bits: value = (d * scale) * (q - 32), where
// `scales` are 16 signed bytes.
struct Block256 {
  std::array<std::uint8_t, 256> q;
  std::array<std::uint8_t, 16> scales;
  std::uint16_t d, dmin;  // f16
};

// A kept block of up to 64 values, opened: value i = d[i / 16] * (q[i] - 128).
struct OpenBlock {
  std::array<std::uint8_t, 64> q;
  std::array<float, 4> d;
};

// A kept superblock of 256 values, opened: value i = (d * scale[i / 16]) * (q[i] - 128) - dmin * min[i / 16]. Only Q2_K has minima. d and
// dmin are f16 numbers (in some formats d is an f16 number times a power of two), so all products are exact.
struct OpenSuperblock {
  std::array<std::uint8_t, 256> q;
  std::array<std::int8_t, 16> scale;
  std::array<std::uint8_t, 16> min;
  float d, dmin;
};

}  // namespace tessera::formats
