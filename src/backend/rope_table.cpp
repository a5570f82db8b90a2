#include "backend/rope_table.hpp"

#include "support/math.hpp"

namespace tessera::backend {

Angle rope_angle(double frequency, std::uint64_t position) noexcept {
  const double angle = static_cast<double>(position) * frequency;
  return {static_cast<float>(math::cos(angle)), static_cast<float>(math::sin(angle))};
}

void rope_table(const double* frequencies, std::size_t n_pairs, std::uint64_t position, float* table) noexcept {
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const Angle angle = rope_angle(frequencies[i], position);
    table[2 * i] = angle.cosine;
    table[2 * i + 1] = angle.sine;
  }
}

void turn_back(const RopeTable& rope, std::uint64_t positions, std::span<float> turn) noexcept {
  rope_table(rope.frequencies.data(), rope.frequencies.size(), positions, turn.data());
  for (std::size_t i = 1; i < turn.size(); i += 2) turn[i] = -turn[i];  // the sine
}

}  // namespace tessera::backend
