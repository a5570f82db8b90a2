// The angles of rotary positions (rope; Su et al. 2021). Every backend computes them here, so that all have the same bits: in double, by
// the library's own sine and cosine, and rounded to float once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.hpp"

namespace tessera::backend {

struct Angle {
  float cosine, sine;
};

// Returns the cosine and the sine of the angle by which a pair of elements is rotated at a position, times the magnitude. `frequency`:
// radians a position.
[[nodiscard]] Angle rope_angle(double frequency, std::uint64_t position, float magnitude) noexcept;

// Writes the table of a position, with the rope's magnitude  [n_pairs][cos, sin].
void rope_table(const RopeTable& rope, std::uint64_t position, float* table) noexcept;

// Writes the table that rotates keys back by `positions` positions, for tokens that move to lower positions  [n_pairs][cos, -sin].
void turn_back(const RopeTable& rope, std::uint64_t positions, std::span<float> turn) noexcept;

}  // namespace tessera::backend
