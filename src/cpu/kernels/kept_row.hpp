// One row by a tile whose bytes lie as lanes read them (lane_tiles.hpp): they are multiplied as they come, and nothing is written
// in between. Integers are those of the opened tile, in the same steps of float.
#pragma once

#include "cpu/kernels/open_lanes.hpp"
#include "cpu/kernels/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr bool multiplies_as_it_comes(PackedForm form) {
  return form == PackedForm::kept_iq4_nl || form == PackedForm::kept_mxfp4 || form == PackedForm::kept_iq4_xs ||
         form == PackedForm::kept_q3_k || form == PackedForm::kept_q2_k;
}

// For look_up(): `n` bytes of each lane from `byte` on, each as a word; the others are zero.
struct WordsOfBytes {
  std::uint8_t at[64];

  constexpr WordsOfBytes(std::size_t byte, std::size_t n) : at() {
    for (std::size_t i = 0; i < 64; ++i) {
      const bool taken = i % 2 == 0 && i % 4 / 2 < n;
      at[i] = static_cast<std::uint8_t>(taken ? i % 16 / 4 * 4 + byte + i % 4 / 2 : 0x80);
    }
  }
};
alignas(64) constexpr WordsOfBytes kOneByte[4] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}}, kTwoBytes[2] = {{0, 2}, {2, 2}};

TESSERA_INLINE I32x16 words_of(U32x16 bytes, const WordsOfBytes& which) {
  return as<I32x16>(look_up(as<U8x64>(bytes), load<U8x64>(which.at)));
}

template <PackedForm kForm>
TESSERA_INLINE void multiply_small_row(const LinearJob& job, const std::byte* tile, std::size_t k, F32x16& acc) {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  const RowLayout layout = row_layout(InputForm::int8x32, job.inputs);
  I32x16 dot[1][1] = {{start<kIntegers.bits, kIntegers.offset>(value_at<std::int32_t>(job.x + layout.sums + k / 32 * 4))}};
  multiply_groups<kIntegers.bits, 8>([&](std::size_t, std::size_t g) TESSERA_LAMBDA { return lane_group<kForm>(tile, g); },
                                     job.x + k, job.x_stride, dot);
  const F32x16 d = kForm == PackedForm::kept_mxfp4 ? powers(tile) : load_f16(tile);
  acc = fma(to_float(dot[0][0]), d * broadcast(value_at<float>(job.x + layout.scales + k / 32 * 4)), acc);
}

// Scales of sub-blocks 4 * w to 4 * w + 3, a byte each.
template <PackedForm kForm>
TESSERA_INLINE U32x16 four_scales(const std::byte* scales, std::size_t w) {
  const auto word = [&](std::size_t i) TESSERA_LAMBDA { return load<U32x16>(scales + 64 * i); };
  if constexpr (kForm == PackedForm::kept_q2_k) return word(w) & broadcast(0x0f0f0f0fu);
  const U32x16 low = (word(w % 2) >> static_cast<int>(w / 2 * 4)) & broadcast(0x0f0f0f0fu);
  return low | ((word(2) >> static_cast<int>(2 * w)) & broadcast(0x03030303u)) << 4;
}

// Q2_K and Q3_K: 16 sub-blocks, whose sums of products fit words.
template <PackedForm kForm>
TESSERA_INLINE I32x16 scaled_sums(const LinearJob& job, const std::byte* tile, const std::byte* q, const std::byte* sums) {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr std::size_t kScales = kForm == PackedForm::kept_q2_k ? 2 : 1;  // which part
  I32x16 sum = broadcast(0);
  TESSERA_UNROLL
  for (std::size_t w = 0; w < 4; ++w) {
    const U32x16 four = four_scales<kForm>(tile + lane_parts(kForm).begin(kScales), w);
    TESSERA_UNROLL
    for (std::size_t b = 0; b < 4; ++b) {
      const std::size_t j = 4 * w + b;
      I32x16 dot[1][1] = {{start<kIntegers.bits, kIntegers.offset>(value_at<std::int16_t>(sums + 2 * j))}};
      multiply_groups<kIntegers.bits, 4>(
          [&](std::size_t, std::size_t g) TESSERA_LAMBDA { return lane_group<kForm>(tile, 4 * j + g); }, q + 16 * j, job.x_stride, dot);
      I32x16 scale = words_of(four, kOneByte[b]);
      if constexpr (kForm == PackedForm::kept_q3_k) scale = add_words(scale, broadcast(0x0000ffe0));  // - 32
      sum = kept(dot2(sum, dot[0][0], scale));
    }
  }
  return sum;
}

// IQ4_XS: 8 sub-blocks.
TESSERA_INLINE I32x16 scaled_sums_of_32(const LinearJob& job, const std::byte* tile, const std::byte* q, const std::byte* sums) {
  constexpr auto kForm = PackedForm::kept_iq4_xs;
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr LaneParts kParts = lane_parts(kForm);
  const auto high = as<U32x16>(load_i16(tile + kParts.begin(1))), low = load<U32x16>(tile + kParts.begin(2));
  I32x16 sum = broadcast(0);
  TESSERA_UNROLL
  for (std::size_t j = 0; j < 8; ++j) {
    const auto shift = static_cast<int>(j);
    const std::int32_t of_x = value_at<std::int16_t>(sums + 4 * j) + value_at<std::int16_t>(sums + 4 * j + 2);
    I32x16 dot[1][1] = {{start<kIntegers.bits, kIntegers.offset>(of_x)}};
    multiply_groups<kIntegers.bits, 8>(
        [&](std::size_t, std::size_t g) TESSERA_LAMBDA { return lane_group<kForm>(tile, 8 * j + g); }, q + 32 * j, job.x_stride, dot);
    const U32x16 six = ((low >> (4 * shift)) & broadcast(15u)) | (((high >> (2 * shift)) & broadcast(3u)) << 4);
    sum = kept(sum + dot[0][0] * (as<I32x16>(six) - broadcast(32)));
  }
  return sum;
}

template <PackedForm kForm>
TESSERA_INLINE void multiply_super_row(const LinearJob& job, const std::byte* tile, std::size_t k, F32x16& acc) {
  constexpr LaneParts kParts = lane_parts(kForm);
  const RowLayout layout = row_layout(InputForm::int8x256, job.inputs);
  const std::byte *q = job.x + k, *sums = job.x + layout.sums + k / 16 * 2;
  I32x16 sum;
  if constexpr (kForm == PackedForm::kept_iq4_xs) sum = scaled_sums_of_32(job, tile, q, sums);
  else sum = scaled_sums<kForm>(job, tile, q, sums);
  const F32x16 scale = broadcast(value_at<float>(job.x + layout.scales + k / 256 * 4));
  acc = fma(to_float(sum), load_f16(tile) * scale, acc);
  if constexpr (kForm == PackedForm::kept_q2_k) {
    I32x16 mins = broadcast(0);
    TESSERA_UNROLL
    for (std::size_t w = 0; w < 4; ++w) {
      const U32x16 four = (load<U32x16>(tile + kParts.begin(2) + 64 * w) >> 4) & broadcast(0x0f0f0f0fu);
      TESSERA_UNROLL
      for (std::size_t i = 0; i < 2; ++i) mins = dot2(mins, words_of(four, kTwoBytes[i]), broadcast4(sums + 8 * w + 4 * i));
    }
    acc = fma(to_float(broadcast(0) - mins), load_f16(tile + kParts.begin(1)) * scale, acc);
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
