// A superblock of a panel, unpacked so that the tile unit, which multiplies bytes, can multiply it. A weight's integer is multiplied by
// the scale of its sub-block first, so that only one float scale is left for the whole superblock. The product has up to 14 bits, more
// than a byte. So it is stored as two bytes, 256 * high + low, where high is signed and low is not. All high bytes are in one plane, all
// low bytes in another. The minima are integers, stored as bf16.
#pragma once

#include "cpu/kernels/amx/tiles.hpp"
#include "cpu/kernels/amx/unpack.hpp"
#include "cpu/kernels/products/open_kept.hpp"

namespace tessera::cpu::TESSERA_ISA {

struct alignas(64) Superblock {
  std::byte low[4][kTileBytes], high[4][kTileBytes];  // B tiles of 64 values of k each
  std::byte min[kTileBytes];  // B tile: the minima of 8 sub-blocks, twice, then zeros; or the minima of 16 sub-blocks, twice
  float d[kPanel], dmin[kPanel];
};

// Multiplies integers by the scales of their sub-blocks and writes the two planes of a Superblock. The instruction that multiplies bytes
// (to 16-bit words) adds each two neighbouring products, but here each product is needed alone. So the instruction runs twice: first the
// integers at even bytes are multiplied by their scales and the integers at odd bytes by 0, then the other way round.
template <std::size_t kSubBlocks, unsigned kOffset>
class Planes {
 public:
  // scale_of(j) returns the scales of sub-block j (-128 to 127), one lane for each output.
  template <class ScaleOf>
  [[gnu::always_inline]] explicit Planes(ScaleOf scale_of) noexcept {
    const __m512i offset = _mm512_set1_epi16(static_cast<short>(kOffset));
    for (std::size_t j = 0; j < kSubBlocks; ++j) {
      const __m512i scale = scale_of(j);
      const __m512i twice = _mm512_mask_blend_epi16(0xaaaaaaaau, scale, _mm512_slli_epi32(scale, 16));
      odd_[j] = _mm512_slli_epi16(twice, 8);
      even_[j] = _mm512_srli_epi16(odd_[j], 8);
      if constexpr (kOffset != 0) minus_[j] = _mm512_mullo_epi16(twice, offset);
    }
  }

  // Writes the weights of k group g. `q`: the group's integers as they are stored (not negative).
  [[gnu::always_inline]] void put(std::size_t g, __m512i q, Superblock& to) const noexcept {
    const __m512i low_byte = _mm512_set1_epi16(255);
    const std::size_t j = g / (64 / kSubBlocks);
    __m512i even = _mm512_maddubs_epi16(q, even_[j]), odd = _mm512_maddubs_epi16(q, odd_[j]);
    if constexpr (kOffset != 0) even = _mm512_sub_epi16(even, minus_[j]), odd = _mm512_sub_epi16(odd, minus_[j]);
    const __m512i low = _mm512_ternarylogic_epi32(low_byte, even, _mm512_slli_epi16(odd, 8), 0xca);
    const __m512i high = _mm512_ternarylogic_epi32(low_byte, _mm512_srli_epi16(even, 8), odd, 0xca);
    _mm512_store_si512(to.low[0] + 64 * g, low);
    _mm512_store_si512(to.high[0] + 64 * g, high);
  }

 private:
  __m512i even_[kSubBlocks], odd_[kSubBlocks], minus_[kSubBlocks];
};

// Writes the tile of minima, in bf16. A row of the tile has two minima of each output. min_of(j) returns the minima of sub-block j. They
// are integers below 64, so a bf16 is simply the upper half of the float.
template <std::size_t kMins, class MinOf>
[[gnu::always_inline]] inline void put_mins(MinOf min_of, Superblock& to) noexcept {
  for (std::size_t j = 0; j < kMins; j += 2) {
    const __m512i even = _mm512_castps_si512(_mm512_cvtepi32_ps(min_of(j)));
    const __m512i odd = _mm512_castps_si512(_mm512_cvtepi32_ps(min_of(j + 1)));
    const __m512i pair = _mm512_or_si512(odd, _mm512_srli_epi32(even, 16));
    _mm512_store_si512(to.min + 32 * j, pair);
    _mm512_store_si512(to.min + 32 * (kMins + j), pair);
  }
  for (std::size_t at = 64 * kMins; at < kTileBytes; at += 64) _mm512_store_si512(to.min + at, _mm512_setzero_si512());
}

// The number of sums of activations that a row has in a superblock; 0 in forms without minima. There is one sum for each minimum, because
// a minimum is multiplied by the sum of the activations of its sub-block.
template <PackedForm kForm>
inline constexpr std::size_t kSums = !form_layout(kForm).has_min ? 0 : form_layout(kForm).kept ? 16 : 8;

// Unpacks a tile of a form that does not keep the file's blocks.
template <PackedForm kForm>
inline void unpack(const std::byte* tile, Superblock& to) noexcept {
  constexpr FormLayout kLayout = form_layout(kForm);
  constexpr std::size_t kSubBlocks = kLayout.bits == 6 ? 16 : 8;
  const SubScales<kLayout> scales(tile);
  const Planes<kSubBlocks, kLayout.offset> planes([&](std::size_t j) { return scales.scale(j); });
  unpack_block256<kLayout>(tile, [&](std::size_t g, __m512i q) { planes.put(g, q, to); });
  _mm512_store_ps(to.d, halves_at(tile + kLayout.d_at));
  if constexpr (kLayout.has_min) {
    _mm512_store_ps(to.dmin, halves_at(tile + kLayout.min_at));
    put_mins<8>([&](std::size_t j) { return scales.min(j); }, to);
  }
}

// Unpacks a tile of a form that keeps the file's blocks.
template <PackedForm kForm>
inline void unpack_kept(const Grids& grids, const std::byte* tile, Superblock& to) noexcept {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  OpenTile open;
  open_kept<kForm>(grids, tile, open);
  const Planes<256 / kIntegers.sub, kIntegers.offset> planes(
      [&](std::size_t j) { return _mm512_load_si512(open.scale[j * kIntegers.sub / 16]); });
  for (std::size_t g = 0; g < 64; ++g) planes.put(g, _mm512_load_si512(open.q[g]), to);
  _mm512_store_ps(to.d, _mm512_load_ps(open.d[0]));
  if constexpr (kSums<kForm> != 0) {
    _mm512_store_ps(to.dmin, _mm512_load_ps(open.dmin));
    put_mins<16>([&](std::size_t j) { return _mm512_load_si512(open.min[j]); }, to);
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
