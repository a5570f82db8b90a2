// The product of one row with weights in a kept packed form (the file's own blocks) whose bytes lie in the order of lanes
// (lane_tiles.hpp). The bytes are opened in registers. (For several rows, linear_kept.cpp writes an opened tile to memory and reads it
// for each row.) The integers and the operations on floats are the same as with an opened tile, so the bits are the same too.
#pragma once

#include "cpu/kernels/products/open_lanes.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr bool multiplies_as_it_comes(PackedForm form) {
  return form == PackedForm::kept_iq4_nl || form == PackedForm::kept_mxfp4 || form == PackedForm::kept_iq4_xs ||
         form == PackedForm::kept_q3_k || form == PackedForm::kept_q2_k;
}

// Indices for look_up(): they turn bytes `byte` and `byte` + 1 of each lane into the two words of the lane.
struct WordsOfBytes {
  std::uint8_t at[64];

  explicit constexpr WordsOfBytes(std::size_t byte) : at() {
    for (std::size_t i = 0; i < 64; ++i) at[i] = static_cast<std::uint8_t>(i % 2 == 0 ? i % 16 / 4 * 4 + byte + i % 4 / 2 : 0x80);
  }
};
alignas(64) constexpr WordsOfBytes kTwoBytes[2] = {WordsOfBytes(0), WordsOfBytes(2)};

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

// Returns the scales of sub-blocks 4 * w to 4 * w + 3 of each output: four bytes in each lane.
template <PackedForm kForm>
TESSERA_INLINE U32x16 four_scales(const std::byte* scales, std::size_t w) {
  const auto word = [&](std::size_t i) TESSERA_LAMBDA { return load<U32x16>(scales + 64 * i); };
  if constexpr (kForm == PackedForm::kept_q2_k) return word(w) & broadcast(0x0f0f0f0fu);
  const U32x16 low = (word(w % 2) >> static_cast<int>(w / 2 * 4)) & broadcast(0x0f0f0f0fu);
  return low | ((word(2) >> static_cast<int>(2 * w)) & broadcast(0x03030303u)) << 4;
}

// Prefetches a part of the weights that lie Ahead::bytes further on than `tile`. These weights, as many bytes as a tile has, are cut into
// `parts` pieces, and a call prefetches piece `part`. Callers spread the calls over a tile, because many prefetches at once would wait for
// each other.
template <PackedForm kForm>
TESSERA_INLINE void ask_part(const std::byte* tile, Ahead ahead, std::size_t part, std::size_t parts) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes, kLines = (kBytes + 63) / 64;
  const std::size_t begin = kLines * part / parts * 64, end = kLines * (part + 1) / parts * 64;
  prefetch(tile + begin, (end < kBytes ? end : kBytes) - begin, ahead);
}

// Returns the bit of its byte at which a 2-bit integer stays when it is multiplied. A byte has four integers; integer s (0 to 3) is stored
// at bit 2 * s.
// - Usually 2 * s: the integer is only masked, not shifted, so that it counts 4^s times. The sum of all products is shifted right by 2 * s
//   bits, which is cheaper than a shift for each group of weights.
// - 0 (the integer is shifted to bit 0 first) in instruction sets that multiply signed bytes (kCentredBytes), and in Q3_K for s = 3, whose
//   third bit would be bit 8.
template <PackedForm kForm>
[[gnu::always_inline]] constexpr int left_in_place(std::size_t s) {
  return kCentredBytes || (kForm == PackedForm::kept_q3_k && s == 3) ? 0 : static_cast<int>(2 * s);
}

// Returns the integers of group g (numbered as in lane_group()), times 2^left_in_place().
template <PackedForm kForm>
TESSERA_INLINE U8x64 group_in_place(const std::byte* tile, std::size_t g) {
  constexpr LaneParts kParts = lane_parts(kForm);
  const std::size_t h = g / 32, s = g % 32 / 8, v = g % 8;
  const int left = left_in_place<kForm>(s);
  if (left == 0) return lane_group<kForm>(tile, g);
  const U32x16 low = load<U32x16>(tile + kParts.begin(kParts.n - 1) + 64 * (8 * h + v)) & broadcast(0x03030303u << left);
  if constexpr (kForm == PackedForm::kept_q2_k) return as<U8x64>(low);
  const U32x16 third = moved(load<U32x16>(tile + kParts.begin(2) + 64 * v), static_cast<int>(s + 4 * h), left + 2);
  return as<U8x64>(low | (third & broadcast(0x04040404u << left)));
}

// Returns, for a Q2_K or Q3_K superblock, the sum over its 16 sub-blocks of scale times dot product. A sub-block's dot product fits 16
// bits, so that dot2() can multiply it by the scale.
template <PackedForm kForm>
TESSERA_INLINE I32x16 scaled_sums(const LinearJob& job, Ahead ahead, const std::byte* tile, const std::byte* q, const std::byte* sums) {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr std::size_t kScales = kForm == PackedForm::kept_q2_k ? 2 : 1;  // index of the part with the scales
  constexpr unsigned kBits = kCentredBytes ? kIntegers.bits : 8;
  I32x16 sum = broadcast(0), of_x = broadcast(0);
  TESSERA_UNROLL
  for (std::size_t w = 0; w < 4; ++w) {
    ask_part<kForm>(tile, ahead, w, 4);
    const U32x16 four = four_scales<kForm>(tile + lane_parts(kForm).begin(kScales), w);
    TESSERA_UNROLL
    for (std::size_t i = 0; i < 2; ++i) {
      I32x16 two = words_of(four, kTwoBytes[i]);
      if constexpr (kForm == PackedForm::kept_q3_k) {
        two = add_words(two, broadcast(static_cast<std::int32_t>(0xffe0ffe0u)));  // - 32
        of_x = dot2(of_x, two, broadcast4(sums + 8 * w + 4 * i));
      }
      const U32x16 scales[2] = {as<U32x16>(two) & broadcast(0xffffu), as<U32x16>(two) >> 16};
      TESSERA_UNROLL
      for (std::size_t b = 0; b < 2; ++b) {
        const std::size_t j = 4 * w + 2 * i + b;
        I32x16 dot[1][1] = {{broadcast(0)}};
        multiply_groups<kBits, 4>([&](std::size_t, std::size_t g) TESSERA_LAMBDA { return group_in_place<kForm>(tile, 4 * j + g); },
                                  q + 16 * j, job.x_stride, dot);
        sum = kept(dot2(sum, dot[0][0] >> left_in_place<kForm>(j % 8 / 2), as<I32x16>(scales[b])));
      }
    }
  }
  return kIntegers.offset == 0 ? sum : sum - of_x * broadcast(kIntegers.offset);
}

// Returns, for an IQ4_XS superblock, the sum over its 8 sub-blocks of scale times dot product.
TESSERA_INLINE I32x16 scaled_sums_of_32(const LinearJob& job, Ahead ahead, const std::byte* tile, const std::byte* q, const std::byte* sums) {
  constexpr auto kForm = PackedForm::kept_iq4_xs;
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr LaneParts kParts = lane_parts(kForm);
  const auto high = as<U32x16>(load_i16(tile + kParts.begin(1))), low = load<U32x16>(tile + kParts.begin(2));
  I32x16 sum = broadcast(0);
  TESSERA_UNROLL
  for (std::size_t j = 0; j < 8; ++j) {
    ask_part<kForm>(tile, ahead, j, 8);
    const auto shift = static_cast<int>(j);
    const std::int32_t of_x = value_at<std::int16_t>(sums + 4 * j) + value_at<std::int16_t>(sums + 4 * j + 2);
    I32x16 dot[1][1] = {{kCentredBytes ? broadcast(0) : broadcast(of_x * -kIntegers.offset)}};
    multiply_groups<kIntegers.bits, 8>(
        [&](std::size_t, std::size_t g) TESSERA_LAMBDA { return lane_group<kForm>(tile, 8 * j + g); }, q + 32 * j, job.x_stride, dot);
    const U32x16 six = ((low >> (4 * shift)) & broadcast(15u)) | (moved(high, 2 * shift, 4) & broadcast(0x30u));
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
  Ahead ahead = job.ahead;
  // All lines of Q3_K are prefetched, even on CPUs whose own prefetchers need only some lines prefetched. The third bits of the weights
  // are read twice, with each half of the other bits, and no CPU's own prefetchers follow this order (on Zen 4 the speed was half).
  if constexpr (kForm == PackedForm::kept_q3_k) ahead.all_lines = true;
  if constexpr (kForm == PackedForm::kept_iq4_xs) sum = scaled_sums_of_32(job, ahead, tile, q, sums);
  else sum = scaled_sums<kForm>(job, ahead, tile, q, sums);
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
