// Finds the best scales for formats whose values are fixed levels times a scale of either sign (Q3_K, IQ4_NL, IQ4_XS). "Best" means: the
// weighted squared error of the decoded values is the least of all scales that are tried.
//
// First, for each sub-block by itself. The search tries scales that put the value of largest magnitude on the lowest level, on the highest
// level, or on one of several targets near these two. With each scale it rounds the values to levels, computes the scale that fits these
// levels with the least error, and keeps the best result.
// Then, in formats with superblocks, the scales of a superblock become integers times one f16 scale. For each sub-block three integers are
// tried: the nearest, the one below and the one above. The integer whose decoded values have the least error is kept.
// Without importance, a value's weight is x * x plus the sub-block's mean of x * x. (With ggml's weight, x * x, the squared error is 3 %
// larger.)
//
// A format's levels are a type with
//   sub      values of a sub-block
//   ends[2]  the lowest and the highest level
//   step     distance between the targets for the value of largest magnitude
//   nearest(value)  the level next to a value
#pragma once

#include <algorithm>
#include <cstddef>

#include "formats/quants/k_quants.hpp"

namespace tessera::formats::detail {

inline constexpr int kScaleTries = 8;  // targets on each side of each end of the levels

template <std::size_t N>
inline void weigh(const float (&x)[N], float (&weight)[N], const float* importance = nullptr, float mean_square = 0) noexcept {
  if (importance != nullptr) return weigh_by_importance(x, weight, importance, mean_square);
  for (std::size_t i = 0; i < N; ++i) weight[i] = x[i] * x[i];
  const float mean = sum(weight) / static_cast<float>(N);
  for (std::size_t i = 0; i < N; ++i) weight[i] += mean;
}

// Returns a sub-block's scale, of either sign, with the least weighted squared error among those that the search tries.
template <class Levels, std::size_t N>
[[nodiscard]] inline float best_scale(const float (&x)[N], const float (&weight)[N]) noexcept {
  const float extreme = largest(x);
  if (extreme == 0) return 0;
  float best = extreme / Levels::ends[0], best_gain = -1;
  for (const float end : Levels::ends) {
    for (int t = -kScaleTries; t <= kScaleTries; ++t) {
      const float inverse = (end + Levels::step * static_cast<float>(t)) / extreme;
      float wll[N], wlx[N];
      for (std::size_t i = 0; i < N; ++i) {
        const float l = Levels::nearest(inverse * x[i]);
        wll[i] = weight[i] * l * l;
        wlx[i] = weight[i] * l * x[i];
      }
      const float sum_ll = sum(wll), sum_lx = sum(wlx);
      if (!(sum_ll > 0)) continue;
      const float gain = sum_lx / sum_ll * sum_lx;  // how much this scale reduces sum(weight * x * x)
      if (!(gain > best_gain)) continue;
      best_gain = gain;
      best = sum_lx / sum_ll;
    }
  }
  return best;
}

template <class Levels, std::size_t N>
[[nodiscard]] inline float scale_error(const float (&x)[N], const float (&weight)[N], float scale) noexcept {
  const float inverse = reciprocal(scale);
  float error[N];
  for (std::size_t i = 0; i < N; ++i) {
    const float miss = scale * Levels::nearest(x[i] * inverse) - x[i];
    error[i] = weight[i] * (miss * miss);
  }
  return sum(error);
}

// The scales of a superblock: d, and for each sub-block an integer from -32 to 31, by which d is multiplied.
template <std::size_t n>
struct Scales {
  float d;
  int scale[n];
};

// Chooses the scales of a superblock. Writes the values to be encoded to `x`: NaN becomes 0, and values out of range are limited.
template <class Levels, std::size_t n>
[[nodiscard]] inline Scales<n> choose_scales(const float* values, float (&x)[n][Levels::sub],
                                             const float* importance = nullptr) noexcept {
  float scale[n], weight[n][Levels::sub];
  const float mean_square = importance != nullptr ? mean_square_of(values) : 0;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < Levels::sub; ++i) x[j][i] = searchable(values[Levels::sub * j + i]);
    weigh(x[j], weight[j], importance != nullptr ? importance + Levels::sub * j : nullptr, mean_square);
    scale[j] = best_scale<Levels>(x[j], weight[j]);
  }
  // The scale of largest magnitude becomes -32, the only integer without a positive counterpart.
  Scales<n> chosen;
  chosen.d = superblock_scale(largest(scale) / -32.0f);
  const float inverse = reciprocal(chosen.d);
  for (std::size_t j = 0; j < n; ++j) {
    const int middle = std::min(round_away(scale[j] * inverse, 32), 31);
    chosen.scale[j] = middle;
    float least = -1;
    for (int s = std::max(middle - 1, -32); s <= std::min(middle + 1, 31); ++s) {
      const float error = scale_error<Levels>(x[j], weight[j], chosen.d * static_cast<float>(s));
      if (least >= 0 && !(error < least)) continue;
      least = error;
      chosen.scale[j] = s;
    }
  }
  return chosen;
}

// The 16 levels of IQ4_NL and IQ4_XS.
struct NonLinear {
  static constexpr std::size_t sub = 32;
  static constexpr float ends[2] = {-127.0f, 113.0f};
  static constexpr float step = 1.0f;
  static constexpr float levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

  // Returns the index of the level nearest to a value, which is the number of borders between levels below the value.
  [[nodiscard]] static unsigned index(float value) noexcept {
    unsigned above = 0;
    for (std::size_t i = 0; i < 15; ++i) above += value > (levels[i] + levels[i + 1]) * 0.5f ? 1 : 0;
    return above;
  }
  [[nodiscard]] static float nearest(float value) noexcept { return levels[index(value)]; }
};

}  // namespace tessera::formats::detail
