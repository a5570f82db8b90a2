// Matrix products of family bf16x3 with AMX, for weights in F16: each weight is the sum of two bf16, a high and a low part, and so is
// each activation. A chunk of weights is split into tiles of high parts and tiles of low parts. Three tile products (low by high parts,
// high by low, high by high) give nearly the precision of f32.
#include "cpu/kernels/amx/bf16_panels.hpp"
#include "cpu/kernels/amx/products.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace bf16x3 {
namespace {

// Splits the weights of 16 outputs (half of an f16 panel) for two values of k into one row of the tile of high parts and one row of the
// tile of low parts.
[[gnu::always_inline]] inline void split_row(const std::byte* from, std::byte* high, std::byte* low) noexcept {
  const auto half = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i); };
  const __m512 even = _mm512_cvtph_ps(half(0)), odd = _mm512_cvtph_ps(half(2));
  const __m512i pairs = round_pair(even, odd);
  const __m512 even_high = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
  const __m512 odd_high = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(~0xffff)));
  _mm512_store_si512(high, pairs);
  _mm512_store_si512(low, round_pair(_mm512_sub_ps(even, even_high), _mm512_sub_ps(odd, odd_high)));
}

void linear(const LinearJob& job) noexcept {
  linear_bf16<2, PackedForm::f16>(job, [](const std::byte* from, std::size_t count, std::byte* to) {
    for (std::size_t tile = 0; tile < count; ++tile) {
      for (std::size_t row = 0; row < kTileBytes; row += 64) {
        std::byte* high = to + tile * 2 * kTileBytes + row;
        split_row(from + 2 * (tile * kTileBytes + row), high, high + kTileBytes);
      }
    }
    return TileRun{to, 2 * kTileBytes};
  });
}

}  // namespace
}  // namespace bf16x3

void add_bf16x3(Kernels& kernels) noexcept {
  using namespace bf16x3;
  // The kernel is used from 3 rows on. This number was not measured against the vector kernels.
  add_bf16<2>(kernels, Family::bf16x3, PackedForm::f16, linear, "tiles of bf16, f16 as two", 3);
}

}  // namespace tessera::cpu::TESSERA_ISA
