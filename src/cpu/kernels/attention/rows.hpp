// Loads one row of a tile (operands.hpp) from the form in which pages store it into registers, as numbers that attention's products
// multiply. A tile has 16 lanes, and each lane has its own sum.
//   two(at, next)  returns the next two numbers of each lane as floats. If kRowsOfTwo is 1, they are a pair in the row at `at`. If it is 2
//                  (F32), a row has one number for each lane, and the second number lies in the next row, `next` bytes after the first
//   bf16()         loads one row (pairs of bf16) of each of several tiles
//   in_order()     two() and bf16() may change the order of lanes, which is faster. in_order() restores the order, once, in the sums
#pragma once

#include "cpu/kernels/attention/operands.hpp"
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

struct LanesInOrder {
  template <std::size_t kT>
  TESSERA_INLINE void in_order(F32x16 (&)[kT]) {}
};

struct RowsOfFloats : LanesInOrder {
  static constexpr std::size_t kRowsOfTwo = 2;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t next) {
    return {load<F32x16>(at), load<F32x16>(at + next)};
  }
};
struct LanesOfHalves {  // lanes in the order of load_f16_pairs()
  template <std::size_t kT>
  TESSERA_INLINE void in_order(F32x16 (&sums)[kT]) {
    TESSERA_UNROLL
    for (std::size_t t = 0; t < kT; ++t) sums[t] = unmixed(sums[t]);
  }
};
struct PairsOfHalves : LanesOfHalves {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) { return load_f16_pairs(at); }
};
struct HalvesAsFloats : LanesOfHalves {  // tiles in two parts, made by HeldF16AsFloats
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) {
    return {load<F32x16>(at), load<F32x16>(at + kPartBytes)};
  }
};
struct PairsOfBf16 : LanesInOrder {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) {
    const auto pairs = load<U32x16>(at);
    return {even_of(pairs), odd_of(pairs)};
  }
};
struct PairsOfBytes : LanesInOrder {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) { return floats_of_bytes(at); }
};

#if defined(__AVX512BF16__)
struct Bf16AsItLies : LanesInOrder {
  template <std::size_t kT>
  TESSERA_INLINE void bf16(const std::byte* const (&at)[kT], U32x16 (&to)[kT]) {
    TESSERA_UNROLL
    for (std::size_t t = 0; t < kT; ++t) to[t] = load<U32x16>(at[t]);
  }
};
struct Bf16OfHalves : LanesInOrder {
  template <std::size_t kT>
  TESSERA_INLINE void bf16(const std::byte* const (&at)[kT], U32x16 (&to)[kT]) {
    TESSERA_UNROLL
    for (std::size_t t = 0; t < kT; ++t) to[t] = bf16_of_halves(at[t]);
  }
};
struct Bf16OfBytes {  // converts two tiles at a time, which mixes their lanes
  template <std::size_t kT>
  TESSERA_INLINE void bf16(const std::byte* const (&at)[kT], U32x16 (&to)[kT]) {
    TESSERA_UNROLL
    for (std::size_t t = 0; t + 1 < kT; t += 2) bf16_of_bytes_mixed(at[t], at[t + 1], to[t], to[t + 1]);
    if constexpr (kT % 2 != 0) to[kT - 1] = bf16_of_bytes(at[kT - 1]);
  }
  template <std::size_t kT>
  TESSERA_INLINE void in_order(F32x16 (&sums)[kT]) {
    TESSERA_UNROLL
    for (std::size_t t = 0; t + 1 < kT; t += 2) unmix_rows(sums[t], sums[t + 1]);
  }
};
#endif

}  // namespace tessera::cpu::TESSERA_ISA
