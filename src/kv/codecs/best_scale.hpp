// Tries several scales for numbers that share one scale, and takes the scale with the smallest rounding error. (Only integer multiples of
// the scale can be stored, so each scale gives other rounding errors.) A codec that chooses its scale in this way has these members:
//   scales                     number of scales to try
//   times(i)                   the integer as which scale i stores the largest magnitude: scale i is the largest magnitude / times(i)
//   scale_from(largest, i)     scale i, if `largest` is the largest magnitude
//   lost(value, per_unit)      squared rounding error of a number, in units of the scale; per_unit is 1 / scale
#pragma once

#include <cstddef>

namespace tessera::kv {

inline constexpr std::size_t kLostLanes = 32;  // errors are summed in this many lanes; lane i sums the numbers i, i + 32, ...

// Returns the scale with the smallest error. `lost_with(per_unit)` returns the sum of lost(value, per_unit) over all numbers.
template <class Codec, class LostWith>
constexpr float best_scale(float largest, LostWith&& lost_with) noexcept {
  float best = 0.0f, least = 0.0f;
  for (unsigned i = 0; i < Codec::scales; ++i) {
    const float scale = Codec::scale_from(largest, i);
    const float lost = lost_with(1.0f / scale) / (Codec::times(i) * Codec::times(i));
    if (i > 0 && !(lost < least)) continue;  // if a number is NaN, the first scale is kept, which is NaN too
    best = scale;
    least = lost;
  }
  return best;
}

// Returns the sum of lost() over n numbers. The order of additions is fixed, so that every machine chooses the same scale: first the
// numbers of each lane in ascending order, then the sums of lanes that are 16 apart, then 8, 4, 2 and 1 apart.
template <class Codec>
constexpr float lost_of(const float* values, std::size_t n, float per_unit) noexcept {
  float lost[kLostLanes] = {};
  std::size_t d = 0;
  for (; d + kLostLanes <= n; d += kLostLanes) {
    for (std::size_t lane = 0; lane < kLostLanes; ++lane) lost[lane] += Codec::lost(values[d + lane], per_unit);
  }
  for (std::size_t lane = 0; d + lane < n; ++lane) lost[lane] += Codec::lost(values[d + lane], per_unit);
  for (std::size_t half = kLostLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lost[lane] += lost[lane + half];
  }
  return lost[0];
}

}  // namespace tessera::kv
