// Family bf16x3: weights of f16 as the sum of two bf16. Each chunk is split into tiles of high and of low halves.
#include "cpu/kernels/amx/bf16_panels.hpp"
#include "cpu/kernels/amx/products.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

// bf16 of 16 numbers, each in the high half of its lane: its f32.
[[gnu::always_inline]] inline __m512 round_bf16(__m512 x) noexcept {
  const __m256i bits = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Lanes of f32 whose low halves are zero: the even and odd k of a row.
[[gnu::always_inline]] inline __m512i interleave(__m512 even, __m512 odd) noexcept {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd));
}

// 16 outputs by two k of f16: the tiles' rows.
[[gnu::always_inline]] inline void split_row(const std::byte* from, std::byte* high, std::byte* low) noexcept {
  const __m512i pairs = _mm512_loadu_si512(from);
  const __m512 even = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
  const __m512 odd = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
  const __m512 even_high = round_bf16(even), odd_high = round_bf16(odd);
  _mm512_store_si512(high, interleave(even_high, odd_high));
  _mm512_store_si512(low,
                     interleave(round_bf16(_mm512_sub_ps(even, even_high)), round_bf16(_mm512_sub_ps(odd, odd_high))));
}

void linear(const LinearJob& job) noexcept {
  linear_bf16<2, PackedForm::f16>(job, [](const std::byte* from, std::size_t count, std::byte* to) {
    for (std::size_t tile = 0; tile < count; ++tile) {
      for (std::size_t row = 0; row < kTileBytes; row += 64) {
        std::byte* high = to + tile * 2 * kTileBytes + row;
        split_row(from + tile * kTileBytes + row, high, high + kTileBytes);
      }
    }
    return TileRun{to, 2 * kTileBytes};
  });
}

}  // namespace

void add_bf16x3(Kernels& kernels) noexcept {
  add_bf16<2>(kernels, Family::bf16x3, PackedForm::f16, linear, "tiles of bf16, f16 as two");
}

}  // namespace tessera::cpu::TESSERA_ISA
