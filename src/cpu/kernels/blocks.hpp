// Unpacks quantised weights of the packed forms block32 and block256 (packed_layout.hpp) into bytes and scales, for products: 16 outputs
// at a time.
#pragma once

#include "cpu/kernels/simd/simd.hpp"
#include "cpu/products/packed_layout.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Reads a block of packed form block32: the weights of a panel's 16 outputs for 32 consecutive values of k (eight groups of four values).
// group(block, g) returns the weights of group g: 64 bytes, whose lane n has the four integers of output n. d() and m() return the scale
// and the minimum of each output, one in each lane. (A weight is d * (integer - offset); in forms with minima it is d * integer + m.)
template <PackedForm kForm>
struct Packed32 {
  static constexpr FormLayout kLayout = form_layout(kForm);
  static constexpr std::size_t kStride = kLayout.tile_bytes;  // bytes from block to block

  TESSERA_INLINE U8x64 group(const std::byte* block, std::size_t g) {
    if constexpr (kLayout.bits == 8) {
      return load<U8x64>(block + 64 * g);
    } else {
      const auto pair = load<U8x64>(block + kLayout.low(0, g % 4));
      const U8x64 low = g < 4 ? low_nibbles(pair) : high_nibbles(pair);
      if constexpr (kLayout.bits == 5) return add_fifth_bits(low, block + kLayout.more(0, g));
      return low;
    }
  }
  TESSERA_INLINE F32x16 d(const std::byte* block) { return load_f16(block + kLayout.d_at); }
  TESSERA_INLINE F32x16 m(const std::byte* block) { return load_f16(block + kLayout.min_at); }
};

// Reads the weights of a panel's 16 outputs for 256 consecutive values of k: one superblock of each output. A superblock has four
// quarters of 64 values of k, and a quarter has 16 groups of four. group(block, p, v) returns the weights of group v in quarter p, with the
// bytes in the same order as in Packed32.
template <PackedForm kForm>
struct Packed256 {
  static constexpr FormLayout kLayout = form_layout(kForm);
  static constexpr std::size_t kStride = kLayout.tile_bytes;
  static constexpr std::size_t kSub = kLayout.bits == 6 ? 16 : 32;  // values of k in a sub-block

  TESSERA_INLINE U8x64 group(const std::byte* block, std::size_t p, std::size_t v) {
    const auto pair = load<U8x64>(block + kLayout.low(p, v % 8));
    const U8x64 low = v < 8 ? low_nibbles(pair) : high_nibbles(pair);
    if constexpr (kLayout.bits == 5) {
      return add_fifth_bits(low, block + kLayout.more(p, v));
    } else if constexpr (kLayout.bits == 6) {
      const auto high = load<U32x16>(block + kLayout.more(p, v % 8));
      const int shift = static_cast<int>(v % 2 * 4 + v / 8 * 2);
      const U32x16 placed = shift < 4 ? high << (4 - shift) : high >> (shift - 4);
      return as<U8x64>(as<U32x16>(low) | (placed & broadcast(0x30303030u)));
    } else {
      return low;
    }
  }

  // Returns the scale of sub-block j of each output, one in each lane.
  TESSERA_INLINE I32x16 scale(const std::byte* block, std::size_t j) {
    const std::byte* words = block + kLayout.scales_at;
    const int byte = 8 * static_cast<int>(j % 4);
    if constexpr (kLayout.bits == 6) return (load<I32x16>(words + j / 4 * 64) << (24 - byte)) >> 24;
    return as<I32x16>((four_scales(words, j / 4) >> byte) & broadcast(0xffu));
  }
  // Returns the minima of sub-blocks 4 i to 4 i + 3 of each output, as the four bytes of the output's lane.
  TESSERA_INLINE U32x16 four_mins(const std::byte* block, std::size_t i) {
    const std::byte* words = block + kLayout.scales_at;
    const auto second = load<U32x16>(words + 64);
    if (i == 0) return second & broadcast(0x3f3f3f3fu);
    return ((load<U32x16>(words + 128) >> 4) & broadcast(0x0f0f0f0fu)) | ((second >> 2) & broadcast(0x30303030u));
  }
  TESSERA_INLINE F32x16 d(const std::byte* block) { return load_f16(block + kLayout.d_at); }
  TESSERA_INLINE F32x16 dmin(const std::byte* block) { return load_f16(block + kLayout.min_at); }

 private:
  TESSERA_INLINE U32x16 four_scales(const std::byte* words, std::size_t i) {
    const auto first = load<U32x16>(words);
    if (i == 0) return first & broadcast(0x3f3f3f3fu);
    return (load<U32x16>(words + 128) & broadcast(0x0f0f0f0fu)) | ((first >> 2) & broadcast(0x30303030u));
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
