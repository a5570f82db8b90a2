// INT4: rotated numbers (kv/rotation.hpp) are stored as x = n * m * scale, where
//   n      is an integer of four bits for each number, -8 .. 7
//   m      is an integer for each 16 numbers, 1 .. 15 or -1 .. -15. Its sign is chosen so that the number of largest magnitude has n = -8
//   scale  is one f32 for each token and head. It maps the largest |x| to 8 * 15
// m is one of the two integers next to the exact factor: the one with the smaller rounding error. n * m fits into 8 bits, so kernels
// can multiply it like INT8's numbers. If a number is a NaN or an infinity, the scale is NaN, and so is each decoded number of the token
// and head.
//
// A run of 32 numbers takes 18 bytes. Byte i of the first 16 has number i in its low half and number 16 + i in its high half. The last
// two bytes are the m of the first and of the last 16 numbers. A head's last run is padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/codecs/largest.hpp"

namespace tessera::kv {

struct Int4 {
  using Element = std::uint8_t;
  static constexpr std::size_t pair = 2;
  static constexpr std::size_t run = 32, run_elements = 18;
  static constexpr bool has_scale = true;
  static constexpr bool rotates = true;

  static constexpr float scale_of(const float* values, std::size_t n) noexcept {
    return scale_from(largest_of(values, n), 8.0f * 15.0f);
  }

  static constexpr void encode_run(const float* values, float scale, Element* to) noexcept {
    Group groups[2];
    for (std::size_t group = 0; group < 2; ++group) {
      if (scale == scale) groups[group] = best_of(values + group * kGroup, scale);
      to[kGroup + group] = static_cast<Element>(groups[group].m);
    }
    for (std::size_t i = 0; i < kGroup; ++i) {
      const int low = static_cast<int>(groups[0].n[i]), high = static_cast<int>(groups[1].n[i]);
      to[i] = static_cast<Element>((low & 15) | (high & 15) << 4);
    }
  }
  static constexpr void decode_run(const Element* from, float scale, float* values) noexcept {
    for (std::size_t i = 0; i < run; ++i) {
      const unsigned half = from[i % kGroup] >> (i / kGroup * 4) & 15u;
      const int n = static_cast<int>(half ^ 8u) - 8, m = static_cast<std::int8_t>(from[kGroup + i / kGroup]);
      values[i] = static_cast<float>(n * m) * scale;
    }
  }

 private:
  static constexpr std::size_t kGroup = 16;

  struct Group {
    float n[kGroup] = {};
    int m = 1;
    float lost = 0.0f;  // sum of squared rounding errors, divided by scale^2
  };

  static constexpr Group best_of(const float* values, float scale) noexcept {
    float highest = 0.0f, lowest = 0.0f;
    for (std::size_t i = 0; i < kGroup; ++i) {
      highest = values[i] > highest ? values[i] : highest;
      lowest = values[i] < lowest ? values[i] : lowest;
    }
    const int sign = highest > -lowest ? -1 : 1;
    const float needed = (sign < 0 ? highest : -lowest) / scale / 8.0f;  // the exact factor m; at most 15, up to rounding
    const int below = needed < 1.0f ? 1 : needed > 14.0f ? 14 : static_cast<int>(needed);
    const Group one = rounded(values, scale, sign * below), other = rounded(values, scale, sign * (below + 1));
    return one.lost <= other.lost ? one : other;
  }
  static constexpr Group rounded(const float* values, float scale, int m) noexcept {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
    Group group;
    group.m = m;
    const float times = static_cast<float>(m), per_unit = 1.0f / (scale * times);
    float lost[kGroup] = {};
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float x = values[i] * per_unit, nearest = (x + kShift) - kShift;
      const float above = nearest < -8.0f ? -8.0f : nearest, n = above > 7.0f ? 7.0f : above;
      group.n[i] = n;
      lost[i] = (x - n) * times * ((x - n) * times);
    }
    for (std::size_t half = kGroup / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lost[i] += lost[i + half];
    }
    group.lost = lost[0];
    return group;
  }
};

}  // namespace tessera::kv
