// Q3_K: 256 values in sixteen sub-blocks of 16, 3-bit numbers from -4 to 3 with a 6-bit scale each (ggml's block_q3_K).
//   byte 0    the third bit of q + 4 of value 128 h + 32 s + i (h = 0 to 1, s = 0 to 3, i = 0 to 31), at bit 4 h + s of byte i
//   byte 32   the low two bits of q + 4 of the same value, at bit 2 s of byte 32 h + i
//   byte 96   the sixteen scales, plus 32 each, in 12 bytes: the low four bits of scale j at bit 4 (j / 8) of byte j mod 8, its high two
//             bits at bit 2 (j / 4) of byte 8 + j mod 4
//   byte 108  d, f16
// Decoding: value = (d * scale) * q, exact in f32, since the factors have 11, 5 and 2 significant bits (-32 and -4 are powers of two).
// Encoding: the search of scale_search.hpp. NaN counts as 0, and values out of range saturate.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/open_blocks.hpp"
#include "formats/scale_search.hpp"

namespace tessera::formats {

struct Q3_K {
  static constexpr DType dtype = DType::q3_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 110;
  static constexpr PackedForm packed_form = PackedForm::kept_q3_k;
  static constexpr Writing writing = {.file_type = 11, .fallback = DType::q4_0};

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block + 108);
    const std::byte* scales = block + 96;
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned low = detail::byte_at(scales + j % 8) >> (j / 8 * 4) & 15u;
      const unsigned high = detail::byte_at(scales + 8 + j % 4) >> (j / 4 * 2) & 3u;
      to.scale[j] = static_cast<std::int8_t>(static_cast<int>(low | high << 4) - 32);
    }
    open_group<0>(block, to.q.data());
    open_group<1>(block, to.q.data());
    open_group<2>(block, to.q.data());
    open_group<3>(block, to.q.data());
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    float x[16][16];
    const auto chosen = detail::choose_scales<Levels>(values, x, importance);
    detail::store_f16(block + 108, chosen.d);
    for (std::size_t i = 0; i < 108; ++i) block[i] = std::byte{};
    for (std::size_t j = 0; j < 16; ++j) {
      const auto six = static_cast<unsigned>(chosen.scale[j] + 32);
      block[96 + j % 8] |= static_cast<std::byte>((six & 15u) << (j / 8 * 4));
      block[104 + j % 4] |= static_cast<std::byte>(six >> 4 << (j / 4 * 2));
      const float inverse = detail::reciprocal(chosen.d * static_cast<float>(chosen.scale[j]));
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t at = 16 * j + i;
        const auto q = static_cast<unsigned>(Levels::nearest(x[j][i] * inverse) + 4.0f);
        block[32 + 32 * (at / 128) + at % 32] |= static_cast<std::byte>((q & 3u) << (at / 32 % 4 * 2));
        block[at % 32] |= static_cast<std::byte>(q >> 2 << (at / 32));
      }
    }
  }

 private:
  struct Levels {
    static constexpr std::size_t sub = 16;
    static constexpr float ends[2] = {-4.0f, 3.0f};
    static constexpr float step = 0.1f;
    [[nodiscard]] static float nearest(float value) noexcept { return detail::nearest_level(value + 4.0f, 7.0f) - 4.0f; }
  };

  // Opens group s (32 values) of each half (128 values) of a block.
  template <unsigned s>
  static void open_group(const std::byte* block, std::uint8_t* q) noexcept {
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned third = detail::byte_at(block + i) >> s & 1u, low = detail::byte_at(block + 32 + i) >> (2 * s) & 3u;
      q[32 * s + i] = static_cast<std::uint8_t>((low | third << 2) + 124);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned third = detail::byte_at(block + i) >> (4 + s) & 1u;
      const unsigned low = detail::byte_at(block + 64 + i) >> (2 * s) & 3u;
      q[128 + 32 * s + i] = static_cast<std::uint8_t>((low | third << 2) + 124);
    }
  }
};

}  // namespace tessera::formats
