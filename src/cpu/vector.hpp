// Vectors of four floats for the plain code of family reference-f32 and reference attention, by the compilers' vector extension: SSE on
// x86-64, NEON on ARM, with the same bits on both. Lanes are independent. Multiplication and addition are rounded separately
// (-ffp-contract=off).
#pragma once

#include <cstddef>
#include <cstring>

namespace tessera::cpu {

using Vec4 = float __attribute__((vector_size(16)));

inline Vec4 load4(const float* from) noexcept {
  Vec4 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store4(float* to, Vec4 value) noexcept { std::memcpy(to, &value, sizeof value); }

// Adds 16 partial sums by a fixed tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
inline float tree_sum(float (&lanes)[16]) noexcept {
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace tessera::cpu
