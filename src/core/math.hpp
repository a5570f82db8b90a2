// Elementary functions of our own: made of + - * / and bit operations in one fixed order, so that every machine, compiler and C library
// gives the same bits. The functions assume rounding to nearest. Subnormal inputs and results of an f32 function count as zero where the
// function's comment says so. NaN in gives NaN out. tests/core/test_math.cpp tests the stated errors.
#pragma once

namespace tessera::math {

// f32, with the error in ulp. Kernels use the same functions inline (src/core/math_inline.hpp).
[[nodiscard]] float exp(float x) noexcept;   // 1 ulp; below -87.25 (results under 1.3e-38): 0; above 88.7228: inf
[[nodiscard]] float tanh(float x) noexcept;  // 2 ulp
[[nodiscard]] float erf(float x) noexcept;   // 2 ulp

// double. Error: 1 ulp, unless the comment says otherwise.
[[nodiscard]] double exp(double x) noexcept;            // results under 2.3e-308 are 0
[[nodiscard]] double log(double x) noexcept;            // log(0) = -inf, log(negative) = NaN
[[nodiscard]] double sin(double x) noexcept;            // |x| up to 1e6; past 1e9: NaN
[[nodiscard]] double cos(double x) noexcept;            // |x| up to 1e6; past 1e9: NaN
[[nodiscard]] double pow(double x, double y) noexcept;  // 2 ulp for results in 1e-20..1e20, 3 in 1e-60..1e60

}  // namespace tessera::math
