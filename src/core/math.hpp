// Elementary functions of our own. They are made of + - * / and bit operations in one fixed order, so that every machine, compiler and C
// library gives the same bits. Precondition: the rounding mode is to nearest. If x is NaN, the result is NaN. In the f32 functions,
// denormal inputs and results count as zero where the comment says so. tests/core/test_math.cpp tests the errors that the comments state.
#pragma once

namespace tessera::math {

// Functions of f32, with their largest error in ulp (units in the last place). Kernels use the same functions inline
// (src/core/math_inline.hpp).
[[nodiscard]] float exp(float x) noexcept;   // 1 ulp; below -87.25 (results under 1.3e-38): 0; above 88.7228: inf
[[nodiscard]] float tanh(float x) noexcept;  // 2 ulp
[[nodiscard]] float erf(float x) noexcept;   // 2 ulp

// Functions of double. Their largest error is 1 ulp, unless the comment says otherwise.
[[nodiscard]] double exp(double x) noexcept;            // results under 2.3e-308 are 0
[[nodiscard]] double log(double x) noexcept;            // log(0) = -inf, log(negative) = NaN
[[nodiscard]] double sin(double x) noexcept;            // |x| up to 1e6; past 1e9: NaN
[[nodiscard]] double cos(double x) noexcept;            // |x| up to 1e6; past 1e9: NaN
[[nodiscard]] double pow(double x, double y) noexcept;  // 2 ulp for results in 1e-20..1e20, 3 in 1e-60..1e60

}  // namespace tessera::math
