// Code that the K-quants share, and their search for the best scales. A superblock of 256 values has sub-blocks with integer scales, which
// are all multiplied by one f16 scale.
//
// The search: the scale that just covers a sub-block's range is far from the best choice. So an encoder tries several scales around it.
// With each scale it rounds the values to integers, and computes the scale and minimum that fit these integers with the least weighted
// squared error (the idea of ggml's make_qkx2_quants and make_qx_quants). Then it rounds each scale to an integer, tries this integer, the
// integer below and the integer above, and keeps the one whose decoded values have the least error. Decoders do not depend on the search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/block.hpp"

namespace tessera::formats::detail {

inline constexpr std::size_t kSuperblock = 256;

// Returns the value limited to +-2^30, so that no sum in the search overflows. No K-quant can hold larger values. NaN becomes 0.
[[nodiscard]] constexpr float searchable(float value) noexcept { return finite(value, 0x1p30f); }

// Returns the scale d of a superblock, rounded to the nearest f16 whose magnitude is not smaller. Reason: the integer scale of a sub-block
// is its scale divided by d. If d were rounded down, the largest integer could leave its range. The difference is large in superblocks of
// small weights, where d is a denormal f16 with few bits: in Q6_K, d is 1/128 of the largest sub-block's scale.
[[nodiscard]] constexpr float superblock_scale(float value) noexcept {
  const float limited = half_range(value);
  const std::uint16_t half = f32_to_f16(limited);
  const bool smaller = magnitude(f16_to_f32(half)) < magnitude(limited);
  return f16_to_f32(static_cast<std::uint16_t>(half + (smaller ? 1 : 0)));
}

// Returns the integer of 0..levels that is nearest to `value`.
[[nodiscard]] constexpr float nearest_level(float value, float levels) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(limit(value, levels) + 0.5f));
}

// Returns the sum of N numbers (N: a power of two): adds one half of the numbers to the other half, and so on until one number is left. In
// this order compilers can add several numbers at once. In a loop that adds one number after another they could not, because another order
// would round differently.
template <std::size_t N>
[[nodiscard]] inline float sum(const float (&terms)[N]) noexcept {
  if constexpr (N == 4) {
    return (terms[0] + terms[2]) + (terms[1] + terms[3]);
  } else {
    float halves[N / 2];
    for (std::size_t i = 0; i < N / 2; ++i) halves[i] = terms[i] + terms[i + N / 2];
    return sum(halves);
  }
}

// Returns the mean of the squares of a superblock's values.
[[nodiscard]] inline float mean_square_of(const float* values) noexcept {
  float squares[kSuperblock];
  for (std::size_t i = 0; i < kSuperblock; ++i) squares[i] = searchable(values[i]) * searchable(values[i]);
  return sum(squares) / static_cast<float>(kSuperblock);
}

// Computes the weights of a sub-block's values from their importance, as ggml does: importance * sqrt(x * x + 2 * mean_square).
template <std::size_t N>
inline void weigh_by_importance(const float (&x)[N], float (&weight)[N], const float* importance, float mean_square) noexcept {
  for (std::size_t i = 0; i < N; ++i) weight[i] = importance[i] * std::sqrt(2.0f * mean_square + x[i] * x[i]);
}

// ---- Q4_K and Q5_K: eight sub-blocks of 32, value = (d * scale) * q - (dmin * min) ----

// The first 16 bytes of a Q4_K or Q5_K block: d and dmin (f16), then 12 bytes with eight scales and eight minima of six bits each. In
// these 12 bytes, for j from 0 to 3:
//   byte j      scale j in the low six bits; the high two bits of scale j + 4 above them
//   byte 4 + j  minimum j in the low six bits; the high two bits of minimum j + 4 above them
//   byte 8 + j  the low four bits of scale j + 4, then the low four bits of minimum j + 4
struct MinScales {
  float d = 0, dmin = 0;
  std::uint8_t scale[8] = {}, min[8] = {};

  void load(const std::byte* block) noexcept {
    d = load_f16(block);
    dmin = load_f16(block + 2);
    std::uint32_t word[3];
    std::memcpy(word, block + 4, sizeof word);
    const std::uint32_t scales[2] = {word[0] & 0x3f3f3f3fu,
                                     (word[2] & 0x0f0f0f0fu) | ((word[0] >> 2) & 0x30303030u)};
    const std::uint32_t mins[2] = {word[1] & 0x3f3f3f3fu,
                                   ((word[2] >> 4) & 0x0f0f0f0fu) | ((word[1] >> 2) & 0x30303030u)};
    std::memcpy(scale, scales, sizeof scales);
    std::memcpy(min, mins, sizeof mins);
  }

  void store(std::byte* block) const noexcept {
    store_f16(block, d);
    store_f16(block + 2, dmin);
    for (std::size_t j = 0; j < 4; ++j) {
      block[4 + j] = static_cast<std::byte>(scale[j] | ((scale[j + 4] >> 4) << 6));
      block[8 + j] = static_cast<std::byte>(min[j] | ((min[j + 4] >> 4) << 6));
      block[12 + j] = static_cast<std::byte>((scale[j + 4] & 15) | ((min[j + 4] & 15) << 4));
    }
  }
};

struct Line {
  float scale, min;  // value = scale * q - min, both at least 0
};

// Returns the scale and the minimum of a sub-block that have the least weighted squared error, among those that the search tries.
template <std::size_t N>
[[nodiscard]] inline Line fit_line(const float (&x)[N], const float (&weight)[N], float levels) noexcept {
  const Range range = range_of(x);
  const float low = std::min(range.min, 0.0f), high = range.max;  // so the minimum that is subtracted is never negative
  float wx[N];
  for (std::size_t i = 0; i < N; ++i) wx[i] = weight[i] * x[i];
  if (!(high > low)) return {0, -low};
  const double sum_w = sum(weight), sum_x = sum(wx);
  Line best{(high - low) / levels, -low};
  double best_gain = -1;  // how much a line reduces sum(weight * x * x); the best line's gain is never negative
  for (int step = -18; step <= 18; ++step) {
    const float inverse = (levels + 0.05f * static_cast<float>(step)) / (high - low);
    float wl[N], wll[N], wlx[N];
    for (std::size_t i = 0; i < N; ++i) {
      const float l = nearest_level(inverse * (x[i] - low), levels);
      wl[i] = weight[i] * l;
      wll[i] = weight[i] * l * l;
      wlx[i] = wx[i] * l;
    }
    const double sum_l = sum(wl), sum_ll = sum(wll), sum_lx = sum(wlx);
    const double determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    double scale = (sum_w * sum_lx - sum_x * sum_l) / determinant;
    double offset = (sum_ll * sum_x - sum_l * sum_lx) / determinant;
    if (offset > 0) {
      offset = 0;
      scale = sum_lx / sum_ll;
    }
    const double gain = scale * sum_lx + offset * sum_x;
    if (scale > 0 && gain > best_gain) {
      best_gain = gain;
      best = {static_cast<float>(scale), static_cast<float>(-offset)};
    }
  }
  return best;
}

// Returns the weighted squared error of a sub-block that is encoded with this scale and minimum, each value by its nearest level.
template <std::size_t N>
[[nodiscard]] inline float line_error(const float (&x)[N], const float (&weight)[N], Line line,
                                      float levels) noexcept {
  const float inverse = reciprocal(line.scale);
  float error[N];
  for (std::size_t i = 0; i < N; ++i) {
    const float miss = line.scale * nearest_level((x[i] + line.min) * inverse, levels) - line.min - x[i];
    error[i] = weight[i] * (miss * miss);
  }
  return sum(error);
}

// Chooses the scales, minima and integers of a block of Q4_K (`levels`, the largest integer, is 15) or Q5_K (31). Without importance a
// value has the same weight as in ggml: the sub-block's root mean square plus |x|.
inline void encode_lines(const float* values, float levels, MinScales& scales, Quants<kSuperblock>& q,
                         const float* importance = nullptr) noexcept {
  const float mean_square = importance != nullptr ? mean_square_of(values) : 0;
  float x[8][32], weight[8][32];
  Line line[8];
  float top_scale = 0, top_min = 0;
  for (std::size_t j = 0; j < 8; ++j) {
    float squares[32];
    for (std::size_t i = 0; i < 32; ++i) {
      x[j][i] = searchable(values[32 * j + i]);
      squares[i] = x[j][i] * x[j][i];
    }
    const float rms = std::sqrt(sum(squares) / 32.0f);
    for (std::size_t i = 0; i < 32; ++i) weight[j][i] = rms + magnitude(x[j][i]);
    if (importance != nullptr) weigh_by_importance(x[j], weight[j], importance + 32 * j, mean_square);
    line[j] = fit_line(x[j], weight[j], levels);
    if (line[j].scale > top_scale) top_scale = line[j].scale;
    if (line[j].min > top_min) top_min = line[j].min;
  }
  // From here on, d and dmin are the f16 that the block will hold.
  scales.d = superblock_scale(top_scale / 63.0f);
  scales.dmin = superblock_scale(top_min / 63.0f);
  const float inverse_d = reciprocal(scales.d), inverse_min = reciprocal(scales.dmin);
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = round_away(line[j].scale * inverse_d, 63);
    const int min = round_away(line[j].min * inverse_min, 63);
    float least = -1;
    for (int s = scale > 0 ? scale - 1 : 0; s <= scale + 1 && s <= 63; ++s) {
      for (int m = min > 0 ? min - 1 : 0; m <= min + 1 && m <= 63; ++m) {
        const Line tried{scales.d * static_cast<float>(s), scales.dmin * static_cast<float>(m)};
        const float error = line_error(x[j], weight[j], tried, levels);
        if (least >= 0 && !(error < least)) continue;
        least = error;
        scales.scale[j] = static_cast<std::uint8_t>(s);
        scales.min[j] = static_cast<std::uint8_t>(m);
      }
    }
    const float inverse = reciprocal(scales.d * static_cast<float>(scales.scale[j]));
    const float offset = scales.dmin * static_cast<float>(scales.min[j]);
    for (std::size_t i = 0; i < 32; ++i)
      q[32 * j + i] = static_cast<std::uint8_t>(nearest_level((x[j][i] + offset) * inverse, levels));
  }
}

// Unpacks two sub-blocks from each 32 bytes: the even sub-block lies in the low halves, the odd one in the high halves.
inline void unpack_nibble_pairs(const std::byte* at, Quants<kSuperblock>& q) noexcept {
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 32; ++i) q[64 * j + i] = static_cast<std::uint8_t>(at[32 * j + i]) & 15u;
    for (std::size_t i = 0; i < 32; ++i) q[64 * j + 32 + i] = static_cast<std::uint8_t>(at[32 * j + i]) >> 4;
  }
}

inline void pack_nibble_pairs(const Quants<kSuperblock>& q, std::byte* at) noexcept {
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 32; ++i)
      at[32 * j + i] = static_cast<std::byte>((q[64 * j + i] & 15) | ((q[64 * j + 32 + i] & 15) << 4));
}

inline void decode_lines(const MinScales& scales, const Quants<kSuperblock>& q, float* values) noexcept {
  for (std::size_t j = 0; j < 8; ++j) {
    const float scale = scales.d * static_cast<float>(scales.scale[j]);
    const float min = scales.dmin * static_cast<float>(scales.min[j]);
    for (std::size_t i = 0; i < 32; ++i) values[32 * j + i] = scale * static_cast<float>(q[32 * j + i]) - min;
  }
}

}  // namespace tessera::formats::detail
