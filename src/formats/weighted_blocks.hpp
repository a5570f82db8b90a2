// Encodes blocks of 32 values with one scale (Q4_0, Q5_0), or with a scale and a minimum (Q4_1, Q5_1), if the importance of the values is
// known. The encoder searches for the best scales, as in the superblock formats. Without importance, these formats are encoded as in ggml's
// reference encoders, which do not search.
#pragma once

#include "formats/scale_search.hpp"

namespace tessera::formats::detail {

// Levels for the search of scale_search.hpp: the integers from -half to half - 1.
template <int half>
struct Centred {
  static constexpr std::size_t sub = 32;
  static constexpr float ends[2] = {-static_cast<float>(half), static_cast<float>(half - 1)};
  static constexpr float step = 0.1f;
  [[nodiscard]] static float nearest(float value) noexcept {
    return nearest_level(value + static_cast<float>(half), static_cast<float>(2 * half - 1)) - static_cast<float>(half);
  }
};

inline void load_weighted(const float* values, const float* importance, float (&x)[32], float (&weight)[32]) noexcept {
  float squares[32];
  for (std::size_t i = 0; i < 32; ++i) {
    x[i] = searchable(values[i]);
    squares[i] = x[i] * x[i];
  }
  weigh_by_importance(x, weight, importance, sum(squares) / 32.0f);
}

// Returns the best scale, rounded to f16. Writes the integer of each value, plus `half`, to `q`.
template <int half>
[[nodiscard]] inline float weighted_scale(const float* values, const float* importance, Quants<32>& q) noexcept {
  float x[32], weight[32];
  load_weighted(values, importance, x, weight);
  const float d = f16_to_f32(f32_to_f16(half_range(best_scale<Centred<half>>(x, weight))));
  const float inverse = reciprocal(d);
  for (std::size_t i = 0; i < 32; ++i) {
    q[i] = static_cast<std::uint8_t>(Centred<half>::nearest(x[i] * inverse) + static_cast<float>(half));
  }
  return d;
}

// Returns the scale and the minimum with the least error, rounded to f16: value = scale * q - min. (The file's block stores m = -min.)
// Writes the integers 0 to `levels` to `q`.
[[nodiscard]] inline Line weighted_line(const float* values, const float* importance, float levels, Quants<32>& q) noexcept {
  float x[32], weight[32];
  load_weighted(values, importance, x, weight);
  Line line = fit_line(x, weight, levels);
  line.scale = f16_to_f32(f32_to_f16(half_range(line.scale)));
  line.min = f16_to_f32(f32_to_f16(half_range(line.min)));
  const float inverse = reciprocal(line.scale);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(nearest_level((x[i] + line.min) * inverse, levels));
  return line;
}

}  // namespace tessera::formats::detail
