// Formats of 4-bit floats (E2M1), whose scales are powers of two (MXFP4) or 8-bit floats (NVFP4).
//
// MXFP4: 32 values (ggml's block_mxfp4; OCP Microscaling Formats 1.0).
//   byte 0   e, E8M0
//   byte 1   q[16]: value i in the low half of byte i, value i + 16 in the high half
// Decoding: value = 2^(e - 128) * table[q], exact. The table has twice the values of E2M1: 0, 1, 2, 3, 4, 6, 8, 12 and the same negated. As
// in ggml, e = 255 means 2^127; products beyond the range of f32 are infinite.
// Encoding (ggml's quantize_row_mxfp4_ref): e is chosen so that the largest value divided by 2^(e - 128) is at least 8 and below 16. Each
// value becomes the nearest value of the table; if two are equally near, the smaller of them. NaN counts as 0.
//
// NVFP4: 64 values in four sub-blocks of 16 (ggml's block_nvfp4).
//   byte 0   scale[4], UE4M3: four bits of exponent, three of fraction. 127 counts as zero; else bit 7 is ignored
//   byte 4   q[32]: 8 bytes a sub-block, value i in the low half of byte i, value i + 8 in the high half
// Decoding: value = (scale / 2) * table[q]. Exact.
#pragma once

#include <bit>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/open_blocks.hpp"

namespace tessera::formats {

namespace detail {

// Returns 2^(e - 128), which is a denormal for e = 0 and 1.
[[nodiscard]] constexpr float half_e8m0(unsigned e) noexcept {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

[[nodiscard]] constexpr float half_ue4m3(unsigned bits) noexcept {
  if (bits == 127) return 0;
  const unsigned exponent = bits >> 3 & 15u, fraction = bits & 7u;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10f;
  return static_cast<float>(8 + fraction) * std::bit_cast<float>((exponent + 127 - 11) << 23);
}

}  // namespace detail

struct MXFP4 {
  static constexpr DType dtype = DType::mxfp4;
  static constexpr std::size_t block_values = 32;
  static constexpr std::size_t block_bytes = 17;
  static constexpr PackedForm packed_form = PackedForm::kept_mxfp4;
  static constexpr Writing writing = {.file_type = 38, .fallback = DType::f16};

  static void open(const std::byte* block, OpenBlock& to) noexcept {
    to.d[0] = to.d[1] = detail::half_e8m0(detail::byte_at(block));
    detail::look_up<16>(detail::kE2M1, block + 1, to.q.data());
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenBlock parts;
    open(block, parts);
    detail::decode<32>(parts, values);
  }

  static void encode(const float* values, std::byte* block) noexcept {
    float x[32];
    detail::load_finite(values, x);
    const std::uint32_t top = std::bit_cast<std::uint32_t>(detail::magnitude(detail::largest(x))) >> 23;  // its exponent + 127
    const std::uint32_t e = top > 2 ? top - 2 : 0;
    block[0] = static_cast<std::byte>(e);
    const float d = detail::half_e8m0(e);
    detail::Quants<32> q;
    for (std::size_t i = 0; i < 32; ++i) {
      static constexpr float kBorders[] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
      const float size = detail::magnitude(x[i]);
      unsigned level = 0;
      for (const float border : kBorders) level += size > border * d ? 1 : 0;
      q[i] = static_cast<std::uint8_t>(level | (x[i] < 0 && level != 0 ? 8u : 0u));
    }
    detail::pack_nibbles(q, block + 1);
  }
};

struct NVFP4 {
  static constexpr DType dtype = DType::nvfp4;
  static constexpr std::size_t block_values = 64;
  static constexpr std::size_t block_bytes = 36;
  static constexpr PackedForm packed_form = PackedForm::kept_nvfp4;

  static void open(const std::byte* block, OpenBlock& to) noexcept {
    for (std::size_t j = 0; j < 4; ++j) {
      to.d[j] = detail::half_ue4m3(detail::byte_at(block + j));
      detail::look_up<8>(detail::kE2M1, block + 4 + 8 * j, to.q.data() + 16 * j);
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenBlock parts;
    open(block, parts);
    detail::decode<64>(parts, values);
  }
};

}  // namespace tessera::formats
