// Unpacks weights of 8 bits (packed form block32_8) into 16-bit words, for products on instruction sets that multiply words faster than
// bytes (kWords).
#pragma once

#include "cpu/kernels/blocks.hpp"

namespace tessera::cpu::TESSERA_ISA {

// The layout of an unpacked block of 32 values of k: int16 q [16 pairs of k][16 outputs][2 k of the pair], then f32 scales d [16 outputs].
struct Words {
  static constexpr FormLayout kLayout = form_layout(PackedForm::block32_8);
  static constexpr std::size_t kStride = 1088, kRows = kRegisters < 4 ? 3 : 2, kChunk = 4, kBlockBytes = 64;

  TESSERA_INLINE F32x16 d(const std::byte* block) { return load<F32x16>(block + 1024); }

  static void unpack(const std::byte* packed, std::size_t blocks, std::byte* to) noexcept {
    using From = Packed32<PackedForm::block32_8>;
    for (std::size_t b = 0; b < blocks; ++b, packed += From::kStride, to += kStride) {
      for (std::size_t g = 0; g < 8; ++g) {
        const U32x16 four = as<U32x16>(From::group(packed, g)) ^ broadcast(0x80808080u);  // signed
        const auto byte = [&](int i) TESSERA_LAMBDA { return as<U32x16>(as<I32x16>(four << (24 - 8 * i)) >> 24); };
        const auto pair = [&](int i) TESSERA_LAMBDA { return (byte(i) & broadcast(0xffffu)) | (byte(i + 1) << 16); };
        store(to + 128 * g, pair(0));
        store(to + 128 * g + 64, pair(2));
      }
      store(to + 1024, From::d(packed));
    }
  }

  // Converts the 8-bit integers of `blocks` blocks of a prepared row to words.
  TESSERA_INLINE void widen(const std::byte* from, std::size_t blocks, std::byte* to) { widen_i8(from, blocks * 32, to); }

  template <std::size_t kR, std::size_t kP>
  TESSERA_INLINE void dots(const std::byte* weights, std::size_t panel_stride, const std::byte* q, std::size_t stride,
                           I32x16 (&dot)[kR][kP]) {
    TESSERA_UNROLL
    for (std::size_t g = 0; g < 16; ++g) {
      I32x16 w[kP];
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) w[p] = kept(load<I32x16>(weights + p * panel_stride + 64 * g));
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        const I32x16 x = broadcast4(q + r * stride + 4 * g);
        TESSERA_UNROLL
        for (std::size_t p = 0; p < kP; ++p) dot[r][p] = kept(dot2(dot[r][p], w[p], x));
      }
    }
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
