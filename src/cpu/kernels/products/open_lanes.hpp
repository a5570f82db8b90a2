// Opens tiles of weights (decodes them to integers and scales) with vector instructions. This works for the kept forms whose bytes lie in
// the order of lanes (lane_tiles.hpp). The opened tile stands for the same weights as a tile that open_tile() opens. But its integers may
// have fewer bits and another offset: those that open_integers() returns.
#pragma once

#include "cpu/kernels/simd/simd.hpp"
#include "cpu/products/lane_tiles.hpp"
#include "cpu/products/open_tile.hpp"

namespace tessera::cpu::TESSERA_ISA {

// The kind of integers in an opened tile: the number of bits, the offset that is subtracted from each integer, and the number of values
// of k that share a scale.
struct OpenIntegers {
  unsigned bits = 8;
  int offset = 128;
  std::size_t sub = 16;
};

// Returns the kind of integers into which a tile of a form is opened: the kind with the fewest bits that can hold the values, because
// instruction sets without VNNI multiply fewer bits faster. Forms that open_tile() opens have integers of eight bits.
[[gnu::always_inline]] constexpr OpenIntegers open_integers(PackedForm form) {
  switch (form) {
    case PackedForm::kept_iq4_nl: return {.sub = 32};
    case PackedForm::kept_mxfp4: return {.bits = 5, .offset = 12, .sub = 32};
    case PackedForm::kept_nvfp4: return {.bits = 5, .offset = 12};
    case PackedForm::kept_q3_k: return {.bits = 3, .offset = 4};
    case PackedForm::kept_q2_k: return {.bits = 2, .offset = 0};
    case PackedForm::kept_tq1_0:
    case PackedForm::kept_tq2_0: return {.bits = 2, .offset = 1, .sub = 32};
    case PackedForm::kept_iq4_xs:
    case PackedForm::kept_iq3_s:
    case PackedForm::kept_iq3_xxs:
    case PackedForm::kept_iq2_xxs:
    case PackedForm::kept_iq1_s: return {.sub = 32};
    default: return {};
  }
}

// Returns a vector whose byte i is table[index[i]]. The table has 16 bytes, and is stored four times to fill the vector. Each index is
// below 16.
TESSERA_INLINE U8x64 look_up(U8x64 table, U8x64 index) {
  return each<U8x64>([&](std::size_t i) TESSERA_LAMBDA {
    using B = native::B;
#if defined(__AVX512F__)
    return (B)_mm512_shuffle_epi8((__m512i)table.r[i], (__m512i)index.r[i]);
#elif defined(__AVX2__)
    return (B)_mm256_shuffle_epi8((__m256i)table.r[i], (__m256i)index.r[i]);
#elif defined(__SSE4_2__)
    return (B)_mm_shuffle_epi8((__m128i)table.r[i], (__m128i)index.r[i]);
#else
    return (B)vqtbl1q_u8((uint8x16_t)table.r[i], (uint8x16_t)index.r[i]);
#endif
  });
}

// Return a vector whose byte i is table[the low (or high) four bits of byte i of `pair`]. The table has 16 bytes, and is stored four
// times to fill the vector. So the VBMI instruction, whose indices have six bits, may get the whole byte: the upper two bits only choose
// among the four equal copies.
TESSERA_INLINE U8x64 of_low_halves(U8x64 table, U8x64 pair) {
#if defined(__AVX512VBMI__)
  return {{(native::B)_mm512_permutexvar_epi8((__m512i)pair.r[0], (__m512i)table.r[0])}};
#else
  return look_up(table, low_nibbles(pair));
#endif
}
TESSERA_INLINE U8x64 of_high_halves(U8x64 table, U8x64 pair) {
#if defined(__AVX512VBMI__)
  return of_low_halves(table, as<U8x64>(as<U32x16>(pair) >> 4));
#else
  return look_up(table, high_nibbles(pair));
#endif
}

// Tables for look_up(): the 16 integers of IQ4, each plus 128, and the 16 numbers of E2M1, each times 2 plus 12 (formats/open_blocks.hpp).
#define TESSERA_FOUR_TIMES(...) {__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__}
alignas(64) constexpr std::uint8_t kNonLinear[64] =
    TESSERA_FOUR_TIMES(1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241);
alignas(64) constexpr std::uint8_t kE2M1[64] =
    TESSERA_FOUR_TIMES(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
#undef TESSERA_FOUR_TIMES

// Returns a field of each byte: its kBits bits from bit `shift` on.
template <unsigned kBits>
TESSERA_INLINE U32x16 bits_of(U32x16 bytes, int shift) {
  return (bytes >> shift) & broadcast(((1u << kBits) - 1) * 0x01010101u);
}

// Shifts the bits so that bit `from` comes to bit `to`.
TESSERA_INLINE U32x16 moved(U32x16 bits, int from, int to) { return from < to ? bits << (to - from) : bits >> (from - to); }

// Returns the integers of group g of a tile of weights: the integers of the 16 outputs for k = 4 g to 4 g + 3 of the tile, an output in
// each lane. Only for the packed forms that a product of one row reads directly, without opening the tile first (kept_row.hpp).
template <PackedForm kForm>
TESSERA_INLINE U8x64 lane_group(const std::byte* tile, std::size_t g) {
  constexpr LaneParts kParts = lane_parts(kForm);
  const std::byte* q = tile + kParts.begin(kParts.n - 1);
  if constexpr (kForm == PackedForm::kept_q2_k || kForm == PackedForm::kept_q3_k) {
    const std::size_t h = g / 32, v = g % 8;
    const auto s = static_cast<int>(g % 32 / 8);
    const U32x16 low = bits_of<2>(load<U32x16>(q + 64 * (8 * h + v)), 2 * s);
    if constexpr (kForm == PackedForm::kept_q2_k) return as<U8x64>(low);
    const U32x16 third = moved(load<U32x16>(tile + kParts.begin(2) + 64 * v), s + static_cast<int>(4 * h), 2);
    return as<U8x64>(low | (third & broadcast(0x04040404u)));
  } else {
    const auto pair = load<U8x64>(q + 64 * (g / 8 * 4 + g % 4));
    const auto table = load<U8x64>(kForm == PackedForm::kept_mxfp4 ? kE2M1 : kNonLinear);
    return g % 8 < 4 ? of_low_halves(table, pair) : of_high_halves(table, pair);
  }
}

// Looks up two values for each of the 64 bytes at `at`: a byte has two indices of four bits. The values of the low indices become
// group g of the opened tile, those of the high indices group g + apart.
TESSERA_INLINE void open_nibbles(U8x64 table, const std::byte* at, OpenTile& to, std::size_t g, std::size_t apart) {
  const auto pair = load<U8x64>(at);
  store(to.q[g], of_low_halves(table, pair));
  store(to.q[g + apart], of_high_halves(table, pair));
}

// Loads 16 unsigned bytes, each into a lane of 32 bits.
TESSERA_INLINE U32x16 load_u8(const std::byte* at) {
  using Bytes [[gnu::vector_size(kLanes)]] = unsigned char;
  return each<U32x16>([&](std::size_t i) TESSERA_LAMBDA {
    return __builtin_convertvector(value_at<Bytes>(at + i * kLanes), native::U);
  });
}

// Returns 2^(e - 128) for 16 bytes e (E8M0).
TESSERA_INLINE F32x16 powers(const std::byte* e) {
  const U32x16 power = load_u8(e), tiny = (power + broadcast(1u)) << 21;  // results for e = 0 and 1, which are denormals
  return as<F32x16>(select(greater(power, broadcast(1u)), (power - broadcast(1u)) << 23, tiny));
}

// Decodes 16 floats of 8 bits (UE4M3: four bits of exponent and three of fraction), times 0.5, because kE2M1 has each number times 2.
TESSERA_INLINE void open_small_floats(const std::byte* from, float* to) {
  const U32x16 bits = load_u8(from);
  const U32x16 exponent = (bits >> 3) & broadcast(15u), fraction = bits & broadcast(7u);
  const U32x16 normal = greater(exponent, broadcast(0u));
  const U32x16 size = fraction + (normal & broadcast(8u));
  const U32x16 power = (select(normal, exponent, broadcast(1u)) + broadcast(116u)) << 23;
  const F32x16 value = to_float(as<I32x16>(size)) * as<F32x16>(power);
  const U32x16 is_zero = greater(bits, broadcast(126u)) & greater(broadcast(128u), bits);
  store(to, select(is_zero, broadcast(0u), as<U32x16>(value)));
}

// Opens 64 bytes of a ternary format. A byte is a fraction in base three, with kDigits digits. The first digits of all bytes become group
// g of the opened tile, the second digits group g + apart, and so on.
template <std::size_t kDigits>
TESSERA_INLINE void open_digits(const std::byte* at, OpenTile& to, std::size_t g, std::size_t apart) {
  auto rest = load<U8x64>(at);
  TESSERA_UNROLL
  for (std::size_t p = 0; p < kDigits; ++p) {
    store(to.q[g + p * apart], each<U8x64>([&](std::size_t i) TESSERA_LAMBDA {  // the digit is rest * 3 / 256
      const native::B digit = (native::B)(rest.r[i] > 85) + (native::B)(rest.r[i] > 170);
      return (native::B)(native::B{} - digit);
    }));
    rest = rest + rest + rest;
  }
}

template <PackedForm kForm>
TESSERA_INLINE void open_lanes(const std::byte* tile, OpenTile& to) {
  constexpr LaneParts kParts = lane_parts(kForm);
  if constexpr (kForm == PackedForm::kept_iq4_nl || kForm == PackedForm::kept_mxfp4) {
    const auto table = load<U8x64>(kForm == PackedForm::kept_mxfp4 ? kE2M1 : kNonLinear);
    store(to.d[0], kForm == PackedForm::kept_mxfp4 ? powers(tile) : load_f16(tile));
    TESSERA_UNROLL
    for (std::size_t v = 0; v < 4; ++v) open_nibbles(table, tile + kParts.begin(1) + 64 * v, to, v, 4);
  } else if constexpr (kForm == PackedForm::kept_nvfp4) {
    const auto table = load<U8x64>(kE2M1);
    for (std::size_t j = 0; j < 4; ++j) open_small_floats(tile + 16 * j, to.d[j]);
    TESSERA_UNROLL
    for (std::size_t v = 0; v < 8; ++v) {
      open_nibbles(table, tile + kParts.begin(1) + 64 * v, to, v / 2 * 4 + v % 2, 2);
    }
  } else if constexpr (kForm == PackedForm::kept_iq4_xs) {
    const auto table = load<U8x64>(kNonLinear);
    store(to.d[0], load_f16(tile));
    const auto high = as<U32x16>(load_i16(tile + kParts.begin(1))), low = load<U32x16>(tile + kParts.begin(2));
    TESSERA_UNROLL
    for (std::size_t j = 0; j < 8; ++j) {
      const auto shift = static_cast<int>(j);
      const U32x16 six = ((low >> (4 * shift)) & broadcast(15u)) | (((high >> (2 * shift)) & broadcast(3u)) << 4);
      const I32x16 scale = as<I32x16>(six) - broadcast(32);
      store(to.scale[2 * j], scale);
      store(to.scale[2 * j + 1], scale);
    }
    for (std::size_t j = 0; j < 8; ++j) {
      TESSERA_UNROLL
      for (std::size_t v = 0; v < 4; ++v) {
        open_nibbles(table, tile + kParts.begin(3) + 64 * (4 * j + v), to, 8 * j + v, 4);
      }
    }
  } else if constexpr (kForm == PackedForm::kept_tq1_0) {
    store(to.d[0], load_f16(tile));
    for (std::size_t j = 0; j < 16; ++j) store(to.scale[j], broadcast(1));
    for (std::size_t v = 0; v < 8; ++v) open_digits<5>(tile + kParts.begin(1) + 64 * v, to, v, 8);
    for (std::size_t v = 0; v < 4; ++v) open_digits<5>(tile + kParts.begin(1) + 64 * (8 + v), to, 40 + v, 4);
    open_digits<4>(tile + kParts.begin(2), to, 60, 1);
  } else {
    store(to.d[0], load_f16(tile));
    if constexpr (kForm == PackedForm::kept_q2_k) store(to.dmin, load_f16(tile + kParts.begin(1)));
    constexpr std::size_t kScales = kForm == PackedForm::kept_q2_k ? 2 : 1;  // index of the part with the scales
    TESSERA_UNROLL
    for (std::size_t j = 0; j < 16; ++j) {
      const auto word = [&](std::size_t w) TESSERA_LAMBDA { return load<U32x16>(tile + kParts.begin(kScales) + 64 * w); };
      const auto byte = static_cast<int>(8 * (j % 4));
      if constexpr (kForm == PackedForm::kept_q2_k) {
        store(to.scale[j], (word(j / 4) >> byte) & broadcast(15u));
        store(to.min[j], (word(j / 4) >> (byte + 4)) & broadcast(15u));
      } else if constexpr (kForm == PackedForm::kept_q3_k) {
        const auto half = static_cast<int>(j / 8 * 4), quarter = static_cast<int>(j / 4 * 2);
        const U32x16 low = (word(j % 8 / 4) >> (byte + half)) & broadcast(15u);
        const U32x16 high = (word(2) >> (byte + quarter)) & broadcast(3u);
        store(to.scale[j], as<I32x16>(low | (high << 4)) - broadcast(32));
      } else {
        store(to.scale[j], broadcast(1));
      }
    }
    const std::byte* q = tile + kParts.begin(kParts.n - 1);
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::size_t v = 0; v < 8; ++v) {
        const auto four = load<U32x16>(q + 64 * (8 * h + v));
        U32x16 third = four;
        if constexpr (kForm == PackedForm::kept_q3_k) {
          third = load<U32x16>(tile + kParts.begin(2) + 64 * v) >> static_cast<int>(4 * h);
        }
        TESSERA_UNROLL
        for (std::size_t s = 0; s < 4; ++s) {
          const auto shift = static_cast<int>(s);
          U32x16 values = bits_of<2>(four, 2 * shift);
          if constexpr (kForm == PackedForm::kept_q3_k) {
            values = values | (bits_of<1>(third, shift) << 2);
          }
          store(to.q[32 * h + 8 * s + v], values);
        }
      }
    }
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
