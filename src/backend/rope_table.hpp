// The angles of rotary positions (Su et al. 2021), as every backend uses them: computed in double by the library's own
// sine and cosine, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.hpp"

namespace tessera::backend {

struct Angle {
  float cosine, sine;
};

// Of a pair of this frequency, in radians a position, times a magnitude.
[[nodiscard]] Angle rope_angle(double frequency, std::uint64_t position, float magnitude) noexcept;

// The table of a position, with the rope's magnitude  [n_pairs][cos, sin].
void rope_table(const RopeTable& rope, std::uint64_t position, float* table) noexcept;

// The table of a rotation back by `positions`, of keys that move to lower ones  [n_pairs][cos, -sin].
void turn_back(const RopeTable& rope, std::uint64_t positions, std::span<float> turn) noexcept;

}  // namespace tessera::backend
