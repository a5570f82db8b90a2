// The Hadamard rotation (kv/rotation.hpp) of queries and of attention's results with vectors, by the same sums and differences as
// kv::rotate().
#pragma once

#include "cpu/kernels/simd/simd.hpp"
#include "kv/rotation.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Returns sums and differences of lanes that are kApart apart: for lanes a and b, a + b in lane a and a - b in lane b.
template <int kApart>
TESSERA_INLINE F32x16 sums_and_differences(F32x16 x) {
  struct Signs {
    alignas(64) std::uint32_t at[16] = {};
  };
  static constexpr Signs kOfSecond = [] {
    Signs signs;
    for (unsigned lane = 0; lane < 16; ++lane) signs.at[lane] = (lane & kApart) != 0 ? 0x80000000u : 0;
    return signs;
  }();
  return swapped<kApart>(x) + as<F32x16>(as<U32x16>(x) ^ load<U32x16>(kOfSecond.at));
}

TESSERA_INLINE void rotate_head(float* x, std::size_t dim, kv::Turn turn) {
  const std::size_t n = kv::rotated_together(dim);
  if (n < 16) return kv::rotate(x, dim, turn);
  const F32x16 factor = broadcast(kv::rotation_factor(n, turn));
  for (std::size_t d = 0; d < dim; d += 16) {
    const F32x16 near = sums_and_differences<2>(sums_and_differences<1>(load<F32x16>(x + d)));
    const F32x16 all = sums_and_differences<8>(sums_and_differences<4>(near));
    store(x + d, n == 16 ? all * factor : all);
  }
  for (std::size_t apart = 16; apart < n; apart *= 2) {
    const F32x16 times = 2 * apart == n ? factor : broadcast(1.0f);
    for (float* block = x; block < x + dim; block += 2 * apart) {
      for (std::size_t d = 0; d < apart; d += 16) {
        const F32x16 a = load<F32x16>(block + d), b = load<F32x16>(block + d + apart);
        store(block + d, (a + b) * times);
        store(block + d + apart, (a - b) * times);
      }
    }
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
