// Vectors of 16 lanes, on registers of any size. Kernels are written once over these vectors, and compiled for each instruction set. A
// thin layer below them differs between instruction sets: avx512.hpp, avx2.hpp, sse.hpp, neon.hpp. Each of these files has the types F,
// I, U and B of one register (floats, signed and unsigned integers, bytes), the number of registers (kNames), and the operations that
// have no operator:
//   fma             a * b + c with one rounding
//   to_float, round   conversions, to nearest even
//   reduce4         combines all lanes of each of four registers by op; the four results are an I4, a register of 16 bytes
//   load_f16_pairs  loads pairs of f16 as floats, the first numbers of the pairs into one register, the second numbers into another.
//                   The order of lanes depends on the set
//   unmixed         puts lanes that have the order of load_f16_pairs into the order of memory
//   larger, smaller a > b ? a : b and a < b ? a : b, also for NaN and zeros
//   dot4<bits>      sum + the products of four bytes of `w` (0 .. 2^bits - 1) and of `x` (-127..127) in each lane, exact. If
//                   kCentredBytes is true (sets that multiply signed bytes), dot4<8> subtracts 128 from each w
//   pair_products   the products of dot4, added only in pairs: two words (16 bits) a lane. `w` has at most 7 bits; with 8 bits a word
//                   would overflow. kPairs: true if adding up such words (add_words), while a word holds the sum, is faster than dot4
//   dot2            sum + the products of two words in each lane
//   widen_i8        stores signed bytes as a register of words. kWords: true if widen_i8 and dot2 are faster than dot4<8> for many rows
//   add_fifth_bits  adds 16 to byte i where bit i is set
//   fp_state, set_fp_state, kFlush   the control register, and its bits that make denormals zero
//   store_i8, store_u16   store the low bits of each lane; the numbers must be in range
//   store_past_caches     stores to an aligned place that is not read soon; call fence_stores() before another thread reads it
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#define TESSERA_INLINE [[gnu::always_inline]] static inline
#define TESSERA_LAMBDA __attribute__((always_inline))
#if defined(__SANITIZE_ADDRESS__)
#define TESSERA_UNROLL  // halves the time to compile
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 16")
#endif
#if defined(__x86_64__)
#define TESSERA_VECTOR_REGISTER "v"
#else
#define TESSERA_VECTOR_REGISTER "w"
#endif

#if defined(__AVX512F__)
#include "cpu/kernels/simd/avx512.hpp"
#elif defined(__AVX2__)
#include "cpu/kernels/simd/avx2.hpp"
#elif defined(__SSE4_2__)
#include "cpu/kernels/simd/sse.hpp"
#else
#include "cpu/kernels/simd/neon.hpp"
#endif

namespace tessera::cpu::TESSERA_ISA {

using native::kCentredBytes;
using native::kPairs;
using native::kWords;
using native::kNames;
inline constexpr std::size_t kRegisters = 64 / native::kBytes;  // registers of a vector
inline constexpr std::size_t kLanes = 16 / kRegisters;          // lanes of a register

template <class Register>
struct Vector {
  Register r[kRegisters];
};
using F32x16 = Vector<native::F>;
using I32x16 = Vector<native::I>;
using U32x16 = Vector<native::U>;
using U8x64 = Vector<native::B>;

// Returns a vector whose register i is fn(i). Written without a loop: in a loop, g++ would keep the vectors of an enclosing loop in memory.
template <class Result, class Fn>
TESSERA_INLINE Result each(Fn fn) {
  if constexpr (kRegisters == 1) {
    return {{fn(0)}};
  } else if constexpr (kRegisters == 2) {
    return {{fn(0), fn(1)}};
  } else {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
}

template <class R>
TESSERA_INLINE Vector<R> operator+(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] + b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator-(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] - b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator*(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] * b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator/(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] / b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator|(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] | b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator&(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] & b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator^(Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] ^ b.r[i]; });
}
template <class R>
TESSERA_INLINE Vector<R> operator<<(Vector<R> a, int n) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] << n; });
}
template <class R>
TESSERA_INLINE Vector<R> operator>>(Vector<R> a, int n) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] >> n; });
}

TESSERA_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::fma(a.r[i], b.r[i], c.r[i]); });
}
TESSERA_INLINE F32x16 larger(F32x16 a, F32x16 b) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::larger(a.r[i], b.r[i]); });
}
TESSERA_INLINE F32x16 smaller(F32x16 a, F32x16 b) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::smaller(a.r[i], b.r[i]); });
}
// Returns a < b ? yes : no for each lane.
TESSERA_INLINE F32x16 if_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return a.r[i] < b.r[i] ? yes.r[i] : no.r[i]; });
}
// Returns a vector whose lane i is lane i ^ kApart of `a`; kApart is a power of two.
template <int kApart, class R, std::size_t... kI>
TESSERA_INLINE R swapped_in_register(R a, std::index_sequence<kI...>) {
  return __builtin_shufflevector(a, a, (static_cast<int>(kI) ^ kApart)...);
}
template <int kApart, class R>
TESSERA_INLINE Vector<R> swapped(Vector<R> a) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA {
    if constexpr (kApart >= static_cast<int>(kLanes)) return a.r[i ^ (kApart / kLanes)];
    else return swapped_in_register<kApart>(a.r[i], std::make_index_sequence<kLanes>{});
  });
}
TESSERA_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::max(a.r[i], b.r[i]); });
}
TESSERA_INLINE F32x16 to_float(I32x16 a) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::to_float(a.r[i]); });
}
TESSERA_INLINE I32x16 round(F32x16 a) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::round(a.r[i]); });
}

// Returns a mask: all ones in lanes where a > b.
TESSERA_INLINE U32x16 greater(U32x16 a, U32x16 b) {
  return each<U32x16>([&](std::size_t i) TESSERA_LAMBDA { return (native::U)(a.r[i] > b.r[i]); });
}
// Returns a where the mask is set, else b.
template <class R>
TESSERA_INLINE Vector<R> select(Vector<R> mask, Vector<R> a, Vector<R> b) {
  return each<Vector<R>>([&](std::size_t i) TESSERA_LAMBDA { return (mask.r[i] & a.r[i]) | (~mask.r[i] & b.r[i]); });
}

// Returns the same bits as another kind of vector.
template <class To, class R>
TESSERA_INLINE To as(Vector<R> a) {
  return each<To>([&](std::size_t i) TESSERA_LAMBDA { return (decltype(To::r[0] + To::r[0]))a.r[i]; });
}

TESSERA_INLINE F32x16 broadcast(float value) {
  return each<F32x16>([&](std::size_t) TESSERA_LAMBDA { return value - native::F{}; });
}
TESSERA_INLINE I32x16 broadcast(std::int32_t value) {
  return each<I32x16>([&](std::size_t) TESSERA_LAMBDA { return value + native::I{}; });
}
TESSERA_INLINE U32x16 broadcast(std::uint32_t value) {
  return each<U32x16>([&](std::size_t) TESSERA_LAMBDA { return value + native::U{}; });
}

// Loads any plain value.
template <class T>
TESSERA_INLINE T value_at(const void* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

// Returns `a`, and makes the compiler keep it in registers. Use it for loaded values: compilers would load a value again for each use, and
// loads can limit a kernel's speed. Use it for sums of integers too: compilers would compute all terms first, and run out of registers.
template <class R>
TESSERA_INLINE Vector<R> kept(Vector<R> a) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kRegisters; ++i) __asm__("" : "+" TESSERA_VECTOR_REGISTER(a.r[i]));
  return a;
}

// Returns four bytes, the same in every lane.
TESSERA_INLINE I32x16 broadcast4(const void* at) { return broadcast(value_at<std::int32_t>(at)); }

// Loads 64 bytes.
template <class V>
TESSERA_INLINE V load(const void* at) {
  const auto* from = static_cast<const std::byte*>(at);
  return each<V>([&](std::size_t i) TESSERA_LAMBDA {
    return value_at<decltype(V::r[0] + V::r[0])>(from + i * native::kBytes);
  });
}
template <class R>
TESSERA_INLINE void store(void* to, Vector<R> value) {
  auto* at = static_cast<std::byte*>(to);
  __builtin_memcpy(at, &value.r[0], sizeof(R));
  if constexpr (kRegisters > 1) __builtin_memcpy(at + sizeof(R), &value.r[1], sizeof(R));
  if constexpr (kRegisters > 2) __builtin_memcpy(at + 2 * sizeof(R), &value.r[2], sizeof(R));
  if constexpr (kRegisters > 2) __builtin_memcpy(at + 3 * sizeof(R), &value.r[3], sizeof(R));
}
TESSERA_INLINE F32x16 load_f16(const std::byte* at) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::load_f16(at + i * kLanes * 2); });
}
struct F32x16Pair {
  F32x16 even, odd;
};
// Loads 16 pairs of f16 as floats: the first numbers into `even`, the second numbers into `odd`. The order of lanes depends on the
// instruction set. Callers restore it once, in the sums, with unmixed().
TESSERA_INLINE F32x16Pair load_f16_pairs(const std::byte* at) {
  F32x16Pair pair;
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kRegisters; ++i) {
    native::load_f16_pairs(at + i * native::kBytes, pair.even.r[i], pair.odd.r[i]);
  }
  return pair;
}
TESSERA_INLINE F32x16 unmixed(F32x16 a) {
  return each<F32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::unmixed(a.r[i]); });
}
TESSERA_INLINE I32x16 load_i16(const std::byte* at) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::load_i16(at + i * kLanes * 2); });
}
TESSERA_INLINE void store_i8(std::byte* to, I32x16 a) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kRegisters; ++i) native::store_i8(to + i * kLanes, a.r[i]);
}
TESSERA_INLINE void store_u16(std::byte* to, I32x16 a) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kRegisters; ++i) native::store_u16(to + i * kLanes * 2, a.r[i]);
}
TESSERA_INLINE void store_past_caches(float* to, F32x16 a) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kRegisters; ++i) native::store_past_caches(to + i * kLanes, a.r[i]);
}
// Loads the first `n` lanes; the others are zeros.
TESSERA_INLINE F32x16 load_some(const float* x, std::size_t n) {
  if (n >= 16) return load<F32x16>(x);
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = x[i];
  return load<F32x16>(lanes);
}

// Stores the first `n` lanes.
TESSERA_INLINE void store_some(float* to, F32x16 a, std::size_t n) {
  if (n >= 16) return store(to, a);
  float lanes[16];
  store(lanes, a);
  for (std::size_t i = 0; i < n; ++i) to[i] = lanes[i];
}

// Combines all lanes of each of four vectors by op, and returns the four results. The result of op must not depend on the order of the
// lanes.
template <class Op>
TESSERA_INLINE native::I4 reduce4(const I32x16 (&v)[4], Op op) {
  native::I folded[4];
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {
    folded[i] = v[i].r[0];
    TESSERA_UNROLL
    for (std::size_t j = 1; j < kRegisters; ++j) folded[i] = op(folded[i], v[i].r[j]);
  }
  return native::reduce4(folded[0], folded[1], folded[2], folded[3], op);
}

TESSERA_INLINE U8x64 low_nibbles(U8x64 a) { return as<U8x64>(as<U32x16>(a) & broadcast(0x0f0f0f0fu)); }
TESSERA_INLINE U8x64 high_nibbles(U8x64 a) { return as<U8x64>((as<U32x16>(a) >> 4) & broadcast(0x0f0f0f0fu)); }
TESSERA_INLINE U8x64 add_fifth_bits(U8x64 low, const std::byte* bits) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(bits);
  return each<U8x64>([&](std::size_t i) TESSERA_LAMBDA {
    return native::add_fifth_bits(low.r[i], at + i * kLanes / 2);
  });
}

template <unsigned kBits>
TESSERA_INLINE I32x16 dot4(I32x16 sum, U8x64 w, I32x16 x) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::dot4<kBits>(sum.r[i], w.r[i], x.r[i]); });
}
// Does the same as dot4() with the four bytes at `x`. Use it for bytes that are needed only once.
template <unsigned kBits>
TESSERA_INLINE I32x16 dot4_at(I32x16 sum, U8x64 w, const std::byte* x) {
#ifdef __AVX512VNNI__
  return {{native::dot4_at(sum.r[0], w.r[0], x)}};
#else
  return dot4<kBits>(sum, w, broadcast4(x));
#endif
}
// Returns two words a lane, each the sum of two products.
TESSERA_INLINE I32x16 pair_products(U8x64 w, I32x16 x) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::pair_products(w.r[i], x.r[i]); });
}
TESSERA_INLINE I32x16 add_words(I32x16 a, I32x16 b) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::add_words(a.r[i], b.r[i]); });
}
// Returns sum + the products of the two words in each lane.
TESSERA_INLINE I32x16 dot2(I32x16 sum, I32x16 w, I32x16 x) {
  return each<I32x16>([&](std::size_t i) TESSERA_LAMBDA { return native::dot2(sum.r[i], w.r[i], x.r[i]); });
}
// Stores signed bytes as words. `bytes`: a multiple of 32.
TESSERA_INLINE void widen_i8(const std::byte* from, std::size_t bytes, std::byte* to) {
  for (std::size_t i = 0; i < bytes; i += native::kBytes / 2) native::widen_i8(from + i, to + 2 * i);
}

// Returns the value from which a block's sum must start, so that adding dot4<kBits> gives the sum of (w - kOffset) * x although dot4
// multiplies the stored integers w (or, with kCentredBytes and 8 bits, w - 128). `sum`: the sum of the block's x.
template <unsigned kBits, int kOffset>
TESSERA_INLINE I32x16 start(std::int32_t sum) {
  if constexpr (kOffset == 0 || (kBits == 8 && kCentredBytes)) return broadcast(0);
  return broadcast(-kOffset) * kept(broadcast(sum));  // multiplied as a vector, which takes fewer instructions
}

}  // namespace tessera::cpu::TESSERA_ISA
