// Wide: several vectors that are computed side by side, for long chains of arithmetic (an exponential, for example). In a chain each
// operation waits for the one before, so a CPU is fast only if it overlaps several chains. It overlaps only the next few dozen
// instructions, and a long chain has more. So the instructions of independent chains must alternate, which Wide makes them do. (One silu
// after another took twice the time in avx512.) Wide has the operators and functions that math_inline.hpp needs.
#pragma once

#include "core/math_inline.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

inline constexpr std::size_t kWide = 4 / kRegisters;  // vectors of a Wide, which take four registers
inline constexpr std::size_t kWideLanes = 16 * kWide;

struct Wide {
  F32x16 v[kWide];
};

// Returns a Wide whose vector i is fn(i).
template <class Fn>
TESSERA_INLINE Wide wide(Fn fn) {
  if constexpr (kWide == 1) {
    return {{fn(0)}};
  } else if constexpr (kWide == 2) {
    return {{fn(0), fn(1)}};
  } else {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
}

TESSERA_INLINE Wide load_wide(const float* at) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return load<F32x16>(at + 16 * i); });
}
TESSERA_INLINE void store(float* to, const Wide& a) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kWide; ++i) store(to + 16 * i, a.v[i]);
}

TESSERA_INLINE Wide operator+(Wide a, Wide b) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return a.v[i] + b.v[i]; });
}
TESSERA_INLINE Wide operator-(Wide a, Wide b) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return a.v[i] - b.v[i]; });
}
TESSERA_INLINE Wide operator*(Wide a, Wide b) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return a.v[i] * b.v[i]; });
}
TESSERA_INLINE Wide operator/(Wide a, Wide b) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return a.v[i] / b.v[i]; });
}

TESSERA_INLINE Wide wide(float c) {
  return wide([&](std::size_t) TESSERA_LAMBDA { return broadcast(c); });
}
TESSERA_INLINE Wide operator+(Wide a, float c) { return a + wide(c); }
TESSERA_INLINE Wide operator-(Wide a, float c) { return a - wide(c); }
TESSERA_INLINE Wide operator*(Wide a, float c) { return a * wide(c); }
TESSERA_INLINE Wide operator+(float c, Wide a) { return wide(c) + a; }
TESSERA_INLINE Wide operator-(float c, Wide a) { return wide(c) - a; }
TESSERA_INLINE Wide operator*(float c, Wide a) { return wide(c) * a; }
TESSERA_INLINE Wide operator/(float c, Wide a) { return wide(c) / a; }

TESSERA_INLINE Wide operator-(Wide a) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return as<F32x16>(as<U32x16>(a.v[i]) ^ broadcast(0x80000000u)); });
}
TESSERA_INLINE Wide magnitude(Wide a) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return as<F32x16>(as<U32x16>(a.v[i]) & broadcast(0x7fffffffu)); });
}
TESSERA_INLINE Wide with_sign_of(Wide a, Wide of) {
  return wide([&](std::size_t i) TESSERA_LAMBDA {
    return as<F32x16>(as<U32x16>(a.v[i]) | (as<U32x16>(of.v[i]) & broadcast(0x80000000u)));
  });
}
TESSERA_INLINE Wide at_least(Wide a, float c) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return larger(broadcast(c), a.v[i]); });
}
TESSERA_INLINE Wide at_most(Wide a, float c) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return smaller(broadcast(c), a.v[i]); });
}
TESSERA_INLINE Wide if_less(Wide a, float c, Wide yes, Wide no) {
  return wide([&](std::size_t i) TESSERA_LAMBDA { return if_less(a.v[i], broadcast(c), yes.v[i], no.v[i]); });
}
TESSERA_INLINE Wide if_less(Wide a, float c, float yes, Wide no) { return if_less(a, c, wide(yes), no); }

// Returns p * 2^n. `shifted`: n + math::inlined::kRound.
TESSERA_INLINE Wide times_power_of_two(Wide p, Wide n, Wide shifted) {
#if defined(__AVX512F__)
  (void)shifted;
  return wide([&](std::size_t i) TESSERA_LAMBDA { return F32x16{{_mm512_scalef_ps(p.v[i].r[0], n.v[i].r[0])}}; });
#else
  (void)n;
  // p is multiplied by two factors whose product is 2^n, because 2^128 is not a float. 256 is added to n before n is halved, so that the
  // halves are not negative.
  return wide([&](std::size_t i) TESSERA_LAMBDA {
    constexpr std::uint32_t kZero = __builtin_bit_cast(std::uint32_t, math::inlined::kRound);
    const U32x16 biased = as<U32x16>(shifted.v[i]) - broadcast(kZero - 256u), half = biased >> 1, one = broadcast(1u);
    return (p.v[i] * as<F32x16>((half - one) << 23)) * as<F32x16>((biased - half - one) << 23);
  });
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA
