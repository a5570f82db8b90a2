// Matrix products of family bf16 with AMX, for quantised weights (packed forms block32 and block256). Each chunk of weights is decoded by
// its format's rule, rounded to bf16, and then multiplied like panels of bf16 (bf16_panels.hpp). A chunk is decoded once for all rows of
// the task.
#include "cpu/kernels/amx/bf16_panels.hpp"
#include "cpu/kernels/amx/products.hpp"
#include "cpu/kernels/amx/unpack.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace bf16_quantised {
namespace {

// Decodes the weights of 16 outputs for four values of k into two rows of a bf16 tile. `q` has the stored integers: a lane for each
// output, and in the lane a byte for each k. value(integers) returns the weights that 16 integers stand for, as floats.
template <class Value>
[[gnu::always_inline]] inline void decode_group(__m512i q, std::byte* rows, Value value) noexcept {
  const __m512i low = _mm512_set1_epi32(255);
  const __m512 k0 = _mm512_cvtepi32_ps(_mm512_and_si512(q, low));
  const __m512 k1 = _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(q, 8), low));
  const __m512 k2 = _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(q, 16), low));
  const __m512 k3 = _mm512_cvtepi32_ps(_mm512_srli_epi32(q, 24));
  _mm512_store_si512(rows, round_pair(value(k0), value(k1)));
  _mm512_store_si512(rows + 64, round_pair(value(k2), value(k3)));
}

template <FormLayout kLayout>
void decode_block32(const std::byte* tile, std::byte* to) noexcept {
  const __m512 d = halves_at(tile + kLayout.d_at), offset = _mm512_set1_ps(static_cast<float>(kLayout.offset));
  __m512 m = _mm512_setzero_ps();
  if constexpr (kLayout.has_min) m = halves_at(tile + kLayout.min_at);
  unpack_block32<kLayout>(tile, [&](std::size_t g, __m512i q) {
    decode_group(q, to + 128 * g, [&](__m512 number) {
      return kLayout.has_min ? _mm512_fmadd_ps(d, number, m) : _mm512_mul_ps(d, _mm512_sub_ps(number, offset));
    });
  });
}

// Decodes a superblock. The products d * scale * q and dmin * min are exact, so only their difference is rounded.
template <FormLayout kLayout>
void decode_block256(const std::byte* tile, std::byte* to) noexcept {
  constexpr std::size_t kSubBlocks = kLayout.bits == 6 ? 16 : 8;
  const SubScales<kLayout> scales(tile);
  const __m512 d = halves_at(tile + kLayout.d_at), offset = _mm512_set1_ps(static_cast<float>(kLayout.offset));
  __m512 scale[kSubBlocks], min[kSubBlocks];
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    scale[j] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scales.scale(j)));
    if constexpr (kLayout.has_min) {
      min[j] = _mm512_mul_ps(halves_at(tile + kLayout.min_at), _mm512_cvtepi32_ps(scales.min(j)));
    }
  }
  unpack_block256<kLayout>(tile, [&](std::size_t g, __m512i q) {
    const std::size_t j = g / (64 / kSubBlocks);
    decode_group(q, to + 128 * g, [&](__m512 number) {
      return kLayout.has_min ? _mm512_fmsub_ps(scale[j], number, min[j])
                             : _mm512_mul_ps(scale[j], _mm512_sub_ps(number, offset));
    });
  });
}

template <PackedForm kForm>
void linear(const LinearJob& job) noexcept {
  linear_bf16<1, kForm>(job, [](const std::byte* from, std::size_t count, std::byte* to) {
    constexpr FormLayout kLayout = form_layout(kForm);
    constexpr std::size_t kTiles = kLayout.block_values / 32;
    for (std::size_t tile = 0; tile < count; tile += kTiles, from += kLayout.tile_bytes, to += kTiles * kTileBytes) {
      if constexpr (kTiles == 1) {
        decode_block32<kLayout>(from, to);
      } else {
        decode_block256<kLayout>(from, to);
      }
    }
    return TileRun{to - count * kTileBytes, kTileBytes};
  });
}

template <PackedForm... kForms>
void add_all(Kernels& kernels) noexcept {
  (add_bf16<1>(kernels, Family::bf16, kForms, linear<kForms>, "tiles of bf16, decoded"), ...);
}

}  // namespace
}  // namespace bf16_quantised

void add_bf16_quantised(Kernels& kernels) noexcept {
  using namespace bf16_quantised;
  add_all<PackedForm::block32_4, PackedForm::block32_4_min, PackedForm::block32_5, PackedForm::block32_5_min,
          PackedForm::block32_8, PackedForm::block256_4, PackedForm::block256_5, PackedForm::block256_6>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
