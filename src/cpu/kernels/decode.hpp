// Decodes packed weights to floats, for products of the families bf16 and bf16x3 without AMX. Input: a panel's weights for 32 values of
// k. Output: planes [32 values of k][16 outputs] of floats that bf16 holds exactly.
// - BF16: one plane, converted exactly. Weights in blocks (Q4_K, for example): one plane, with the weights rounded to bf16.
// - F16 (family bf16x3): a panel has 32 outputs, and a weight is the exact sum of a high and a low float. So there are four planes:
//   [half of the 32 outputs][high, low][32 values of k][16 outputs].
#pragma once

#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/blocks.hpp"

namespace tessera::cpu::TESSERA_ISA {

inline constexpr std::size_t kDecoded = 32;                  // values of k that are decoded at a time
inline constexpr std::size_t kPlaneBytes = kDecoded * 64;    // bytes of a plane: floats of 16 outputs for these values of k

TESSERA_INLINE void store_rounded(std::byte* to, F32x16 value) { store(to, as<F32x16>(to_bf16(value))); }

TESSERA_INLINE void store_both_planes(std::byte* to, F32x16 f16) {
  const F32x16 high = high_of_f16(f16);
  store(to, high);
  store(to + kPlaneBytes, f16 - high);
}

// Takes a group apart: the weights of 16 outputs for four consecutive values of k, of which each lane (an output) has four bytes. Calls
// fn(j, value) for j from 0 to 3. `value`: in each lane, the lane's integer j minus `offset`, as a float.
template <class Fn>
TESSERA_INLINE void each_of_group(U8x64 group, std::int32_t offset, Fn fn) {
  const auto words = as<U32x16>(group);
  TESSERA_UNROLL
  for (int j = 0; j < 4; ++j) {
    fn(static_cast<std::size_t>(j), to_float(as<I32x16>((words >> (8 * j)) & broadcast(0xffu)) - broadcast(offset)));
  }
}

template <PackedForm kForm>
TESSERA_INLINE void decode_block32(const std::byte* block, std::byte* to) {
  using From = Packed32<kForm>;
  const F32x16 d = From::d(block);
  const F32x16 m = From::kLayout.has_min ? From::m(block) : broadcast(0.0f);
  TESSERA_UNROLL
  for (std::size_t g = 0; g < 8; ++g) {
    each_of_group(From::group(block, g), From::kLayout.offset, [&](std::size_t j, F32x16 value) TESSERA_LAMBDA {
      const F32x16 product = d * value;
      store_rounded(to + 64 * (4 * g + j), From::kLayout.has_min ? product + m : product);
    });
  }
}

// Decodes 32 of the 256 values of k of a superblock: k = 32 * j to 32 * j + 31 of the superblock.
template <PackedForm kForm>
TESSERA_INLINE void decode_block256(const std::byte* block, std::size_t j, std::byte* to) {
  using From = Packed256<kForm>;
  const F32x16 d = From::d(block);
  F32x16 min = broadcast(0.0f);
  if constexpr (From::kLayout.has_min) {
    const U32x16 mins = From::four_mins(block, j / 4) >> static_cast<int>(8 * (j % 4));
    min = From::dmin(block) * to_float(as<I32x16>(mins & broadcast(0xffu)));
  }
  for (std::size_t g = 0; g < 8; ++g) {
    const std::size_t group = 8 * j + g;
    const F32x16 scale = d * to_float(From::scale(block, 4 * group / From::kSub));
    const U8x64 q = From::group(block, group / 16, group % 16);
    each_of_group(q, From::kLayout.offset, [&](std::size_t i, F32x16 value) TESSERA_LAMBDA {
      const F32x16 product = scale * value;
      store_rounded(to + 64 * (4 * g + i), From::kLayout.has_min ? product - min : product);
    });
  }
}

// Decodes the weights of a panel for 32 values of k, k = 32 * step to 32 * step + 31, into the planes at `to` (see the top of the file).
// For F16 also writes the planes of low parts, which have what rounding to bf16 lost.
template <PackedForm kForm>
TESSERA_INLINE void decode(const std::byte* panel, std::size_t step, std::byte* to) {
  constexpr FormLayout kLayout = form_layout(kForm);
  if constexpr (kLayout.block_values == 256) {
    decode_block256<kForm>(panel + step / 8 * kLayout.tile_bytes, step % 8, to);
  } else if constexpr (kLayout.bits != 0) {
    decode_block32<kForm>(panel + step * kLayout.tile_bytes, to);
  } else {
    for (std::size_t k = 0; k < kDecoded; k += 2, to += 128) {
      const std::byte* from = panel + step * kLayout.tile_bytes + k * 2 * kLayout.outputs;
      if constexpr (kForm == PackedForm::bf16) {
        const auto pairs = load<U32x16>(from);
        store(to, even_of(pairs));
        store(to + 64, odd_of(pairs));
      } else {
        constexpr std::size_t kHalf = 2 * kPlaneBytes;
        store_both_planes(to, load_f16(from));
        store_both_planes(to + kHalf, load_f16(from + 32));
        store_both_planes(to + 64, load_f16(from + 64));
        store_both_planes(to + kHalf + 64, load_f16(from + 96));
      }
    }
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
