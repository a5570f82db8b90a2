// Computes the scale of one token and head from the largest magnitude of its numbers.
#pragma once

#include <cstddef>
#include <limits>

namespace tessera::kv {

// Returns the largest magnitude of n numbers; NaN if any of them is a NaN or an infinity.
constexpr float largest_of(const float* values, std::size_t n) noexcept {
  float largest = 0.0f;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    const float magnitude = values[i] < 0.0f ? -values[i] : values[i];
    finite = finite && magnitude <= std::numeric_limits<float>::max();  // stays false once a magnitude is infinite or NaN
    largest = magnitude > largest ? magnitude : largest;
  }
  return finite ? largest : std::numeric_limits<float>::quiet_NaN();
}

// Returns the scale that maps `largest` to `times`: largest / times, within two bounds. The scale is at least the smallest normal float, so
// that nothing is divided by zero. The scale is also small enough for times * scale to be finite. Returns NaN if `largest` is NaN.
constexpr float scale_from(float largest, float times) noexcept {
  if (!(largest <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
  constexpr float kLeast = std::numeric_limits<float>::min();
  const float most = std::numeric_limits<float>::max() / times * 0x1.fffffcp-1f;
  const float scale = largest / times;
  return scale < kLeast ? kLeast : scale > most ? most : scale;
}

}  // namespace tessera::kv
