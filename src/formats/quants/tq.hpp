// TQ1_0 and TQ2_0: 256 values of -1, 0 and 1 with one scale (ggml's block_tq1_0 and block_tq2_0).
//
// q stands for a value without the scale: -1, 0 or 1. Both formats store q + 1.
//
// TQ1_0  byte 0    48 bytes of five values each. byte / 256 is a fraction in base three, and its digit p (p = 0 to 4) is q + 1 of the
//                  byte's value p: q + 1 = (byte * 3^p mod 256) * 3 / 256, rounded down. Byte i (i = 0 to 31) has the values 32 p + i;
//                  byte 32 + i (i = 0 to 15) has the values 160 + 16 p + i
//        byte 48   four bytes of four values each (p = 0 to 3), in the same way: byte 48 + i has the values 240 + 4 p + i
//        byte 52   d, f16
// TQ2_0  byte 0    64 bytes: q + 1 of value 128 h + 32 s + i (h = 0 to 1, s = 0 to 3, i = 0 to 31) in two bits at bit 2 s of byte 32 h + i.
//                  The bits 11 decode to q = 2
//        byte 64   d, f16
// Decoding: value = d * q, exact.
#pragma once

#include "formats/open_blocks.hpp"

#include <tessera/core/dtype.hpp>

namespace tessera::formats {

struct TQ1_0 {
  static constexpr DType dtype = DType::tq1_0;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 54;
  static constexpr PackedForm packed_form = PackedForm::kept_tq1_0;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block + 52);
    to.scale.fill(1);
    open_digits<5, 32>(block, to.q.data());
    open_digits<5, 16>(block + 32, to.q.data() + 160);
    open_digits<4, 4>(block + 48, to.q.data() + 240);
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }

 private:
  template <std::size_t digits, std::size_t bytes>
  static void open_digits(const std::byte* at, std::uint8_t* q) noexcept {
    unsigned power = 1;
    for (std::size_t p = 0; p < digits; ++p, power *= 3) {
      for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned rest = detail::byte_at(at + i) * power & 255u;
        q[bytes * p + i] = static_cast<std::uint8_t>((rest * 3 >> 8) + 127);
      }
    }
  }
};

struct TQ2_0 {
  static constexpr DType dtype = DType::tq2_0;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 66;
  static constexpr PackedForm packed_form = PackedForm::kept_tq2_0;

  static void open(const std::byte* block, OpenSuperblock& to) noexcept {
    to.d = detail::load_f16(block + 64);
    to.scale.fill(1);
    for (std::size_t h = 0; h < 2; ++h) {
      for (unsigned s = 0; s < 4; ++s) {
        for (std::size_t i = 0; i < 32; ++i) {
          to.q[128 * h + 32 * s + i] = static_cast<std::uint8_t>((detail::byte_at(block + 32 * h + i) >> (2 * s) & 3u) + 127);
        }
      }
    }
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenSuperblock parts;
    open(block, parts);
    detail::decode<false>(parts, values);
  }
};

}  // namespace tessera::formats
