// The f32 functions of core/math.hpp, inline, for loops in kernels. They have no branches and no calls, so that compilers vectorise loops
// over them at -O3; vectors of every instruction set give the same bits as scalar code. V is float, or a vector type that has float's
// operators and overloads of the functions below (cpu/kernels/simd/wide.hpp).
// Include this only in files compiled with -ffp-contract=off (all of ours). The functions are static and do not use std::bit_cast, so that
// objects for different instruction sets share no symbol. They are constexpr, so that CUDA kernels can call them.
#pragma once

#include <cstdint>

namespace tessera::math::inlined {

// Returns condition ? a : b by bit operations. Compilers would make a branch of the operator ?: , because they must assume that float
// arithmetic traps; and g++ does not vectorise loops with branches.
[[nodiscard, gnu::always_inline]] static constexpr float select(bool condition, float a, float b) noexcept {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, a) & mask) |
                                       (__builtin_bit_cast(std::uint32_t, b) & ~mask));
}

// Return the larger and the smaller of x and c. If x is NaN, the result is NaN.
[[nodiscard, gnu::always_inline]] static constexpr float at_least(float x, float c) noexcept { return select(c > x, c, x); }
[[nodiscard, gnu::always_inline]] static constexpr float at_most(float x, float c) noexcept { return select(c < x, c, x); }
[[nodiscard, gnu::always_inline]] static constexpr float if_less(float x, float c, float yes, float no) noexcept {
  return select(x < c, yes, no);
}
[[nodiscard, gnu::always_inline]] static constexpr float magnitude(float x) noexcept {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & 0x7fffffffu);
}
[[nodiscard, gnu::always_inline]] static constexpr float with_sign_of(float x, float of) noexcept {
  const std::uint32_t sign = __builtin_bit_cast(std::uint32_t, of) & 0x80000000u;
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) | sign);
}

constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, which is then in the low bits

// Returns p * 2^n, where n is the integer shifted - kRound.
[[nodiscard, gnu::always_inline]] static constexpr float times_power_of_two(float p, float, float shifted) noexcept {
  const std::uint32_t exponent = __builtin_bit_cast(std::uint32_t, shifted) - __builtin_bit_cast(std::uint32_t, kRound);
  // Multiplies by two factors, because 2^n alone may be too large for a float (2^128). n + 256 is halved instead of n, because it is not
  // negative.
  const std::uint32_t biased = exponent + 256u;
  const std::uint32_t half = biased >> 1;
  const float first = __builtin_bit_cast(float, (half - 128u + 127u) << 23);
  const float second = __builtin_bit_cast(float, (biased - half - 128u + 127u) << 23);
  return (p * first) * second;
}

// Returns e^x = 2^n e^r, where n = round(x / ln 2), so |r| <= ln 2 / 2. e^r = 1 + r + r^2 P(r), where P is a near-minimax polynomial of
// degree 5.
template <class V>
[[nodiscard, gnu::always_inline]] static constexpr V exp(V x) noexcept {
  const V clamped = at_most(at_least(x, -88.0f), 89.0f);  // e^89 overflows below, by itself
  const V shifted = clamped * 0x1.715476p+0f + kRound;
  const V n = shifted - kRound;
  const V r = (clamped - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;  // ln 2 in two parts; the first product is exact
  V p = r * 0x1.9f0896p-13f + 0x1.6d8d06p-10f;
  p = p * r + 0x1.111270p-7f;
  p = p * r + 0x1.55548ep-5f;
  p = p * r + 0x1.555554p-3f;
  p = p * r + 0.5f;
  p = (p * r) * r + r + 1.0f;
  return if_less(x, -87.25f, 0.0f, times_power_of_two(p, n, shifted));
}

// Returns tanh(x). For |x| < 0.63: x + x^3 P(x^2), where P is a near-minimax polynomial of degree 5. Otherwise: 1 - 2 / (e^(2|x|) + 1),
// with the sign of x.
template <class V>
[[nodiscard, gnu::always_inline]] static constexpr V tanh(V x) noexcept {
  const V t = magnitude(x);
  const V large = 1.0f - 2.0f / (inlined::exp(2.0f * t) + 1.0f);
  const V s = t * t;
  V p = s * 0x1.163b88p-9f + -0x1.0b43d6p-7f;
  p = p * s + 0x1.636964p-6f;
  p = p * s + -0x1.b9eba8p-5f;
  p = p * s + 0x1.111058p-3f;
  p = p * s + -0x1.555554p-2f;
  const V small = (p * s) * t + t;
  return with_sign_of(if_less(t, 0.63f, small, large), x);
}

// Returns erf(x). For |x| < 0.92: x P(x^2), where P is a near-minimax polynomial of degree 6. Otherwise, with t = |x|: 1 - e^(-t Q(t)),
// with the sign of x. Q is a polynomial of degree 6 that approximates -ln(erfc(t)) / t.
template <class V>
[[nodiscard, gnu::always_inline]] static constexpr V erf(V x) noexcept {
  const V positive = magnitude(x);
  const V t = at_most(positive, 4.0f);  // erf(4) rounds to 1
  V q = t * 0x1.5e11f2p-17f + -0x1.4a2682p-12f;
  q = q * t + 0x1.d936b6p-9f;
  q = q * t + -0x1.843626p-6f;
  q = q * t + 0x1.b2d3d0p-4f;
  q = q * t + 0x1.4538aep-1f;
  q = q * t + 0x1.20ee5cp+0f;
  const V large = 1.0f - inlined::exp(-(q * t));
  const V s = t * t;
  V p = s * 0x1.57ac0cp-14f + -0x1.a8aab8p-11f;
  p = p * s + 0x1.5499cap-8f;
  p = p * s + -0x1.b809bep-6f;
  p = p * s + 0x1.ce2dd0p-4f;
  p = p * s + -0x1.812742p-2f;
  p = p * s + 0x1.06eba8p-3f;  // 2/sqrt(pi) - 1: the 1 is added as x itself, which rounds once
  const V small = p * t + t;
  return with_sign_of(if_less(t, 0.92f, small, large), x);
}

}  // namespace tessera::math::inlined
