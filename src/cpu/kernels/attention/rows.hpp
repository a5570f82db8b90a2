// How the rows of a tile (operands.hpp) become numbers in registers: two() gives two consecutive numbers along the sum of
// each of the 16 lanes, from `at` on, where `next` leads to the next row; bf16() the same as pairs of bf16. They lie in
// kRowsOfTwo rows.
#pragma once

#include "cpu/kernels/attention/operands.hpp"
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

struct RowsOfFloats {
  static constexpr std::size_t kRowsOfTwo = 2;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t next) {
    return {load<F32x16>(at), load<F32x16>(at + next)};
  }
};
struct PartsOfFloats {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) {
    return {load<F32x16>(at), load<F32x16>(at + kPartBytes)};
  }
};
struct PairsOfHalves {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) { return load_f16_pairs(at); }
#if defined(__AVX512BF16__)
  TESSERA_INLINE U32x16 bf16(const std::byte* at) { return bf16_of_halves(at); }
#endif
};
struct PairsOfBf16 {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) {
    const auto pairs = load<U32x16>(at);
    return {even_of(pairs), odd_of(pairs)};
  }
  TESSERA_INLINE U32x16 bf16(const std::byte* at) { return load<U32x16>(at); }
};
struct PairsOfBytes {
  static constexpr std::size_t kRowsOfTwo = 1;
  TESSERA_INLINE F32x16Pair two(const std::byte* at, std::size_t) { return floats_of_bytes(at); }
  TESSERA_INLINE U32x16 bf16(const std::byte* at) { return bf16_of_bytes(at); }
};

}  // namespace tessera::cpu::TESSERA_ISA
