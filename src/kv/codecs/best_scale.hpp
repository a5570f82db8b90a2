// One of several scales: each makes another grid, which meets a token's numbers by chance, and the one by which least is lost is
// taken. A codec of this kind has
//   scales                     how many there are
//   times(i)                   the number that the largest becomes with scale i
//   scale_from(largest, i)     that scale
//   lost(value, per_unit)      what is lost of a number, squared, in steps; per_unit is one over the scale
#pragma once

#include <cstddef>

namespace tessera::kv {

inline constexpr std::size_t kLostLanes = 32;  // of a sum of what is lost: lane i has the numbers i, i + 32, ...

// `lost_with(per_unit)` is the sum over the numbers.
template <class Codec, class LostWith>
constexpr float best_scale(float largest, LostWith&& lost_with) noexcept {
  float best = 0.0f, least = 0.0f;
  for (unsigned i = 0; i < Codec::scales; ++i) {
    const float scale = Codec::scale_from(largest, i);
    const float lost = lost_with(1.0f / scale) / (Codec::times(i) * Codec::times(i));
    if (i > 0 && !(lost < least)) continue;  // NaN: the first, which is one too
    best = scale;
    least = lost;
  }
  return best;
}

// The lanes' sums, ascending, then of lanes 16 apart, 8, 4, 2, 1.
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
