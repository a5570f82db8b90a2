// Chooses the best of several scales. Each scale makes another grid, which fits a token's numbers by chance; the scale with the least error
// is taken. A codec of this kind has
//   scales                     the number of scales
//   times(i)                   the value to which scale i maps the largest number
//   scale_from(largest, i)     scale i
//   lost(value, per_unit)      the squared error of a number, in steps of the grid; per_unit is 1 / scale
#pragma once

#include <cstddef>

namespace tessera::kv {

inline constexpr std::size_t kLostLanes = 32;  // lanes of a sum of errors: lane i has the numbers i, i + 32, ...

// Returns the scale with the least error. `lost_with(per_unit)` returns the error summed over the numbers.
template <class Codec, class LostWith>
constexpr float best_scale(float largest, LostWith&& lost_with) noexcept {
  float best = 0.0f, least = 0.0f;
  for (unsigned i = 0; i < Codec::scales; ++i) {
    const float scale = Codec::scale_from(largest, i);
    const float lost = lost_with(1.0f / scale) / (Codec::times(i) * Codec::times(i));
    if (i > 0 && !(lost < least)) continue;  // with a NaN among the numbers the first scale stays, which is NaN too
    best = scale;
    least = lost;
  }
  return best;
}

// Returns the sum of errors, added in a fixed order: within each lane in ascending order; then lanes 16 apart, 8, 4, 2, 1.
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
