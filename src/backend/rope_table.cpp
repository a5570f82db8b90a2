#include "backend/rope_table.hpp"

#include "core/math.hpp"

namespace tessera::backend {

Angle rope_angle(double frequency, std::uint64_t position, float magnitude) noexcept {
  const double angle = static_cast<double>(position) * frequency;
  return {static_cast<float>(math::cos(angle)) * magnitude, static_cast<float>(math::sin(angle)) * magnitude};
}

void rope_table(const RopeTable& rope, std::uint64_t position, float* table) noexcept {
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    const Angle angle = rope_angle(rope.frequencies[i], position, rope.magnitude);
    table[2 * i] = angle.cosine;
    table[2 * i + 1] = angle.sine;
  }
}

void turn_back(const RopeTable& rope, std::uint64_t positions, std::span<float> turn) noexcept {
  RopeTable plain = rope;
  plain.magnitude = 1.0f;  // keys are multiplied by it already
  rope_table(plain, positions, turn.data());
  for (std::size_t i = 1; i < turn.size(); i += 2) turn[i] = -turn[i];  // the sine
}

}  // namespace tessera::backend
