// Rotary positions (rope; Su et al. 2021) on the CPU: rope_factors() makes the factors by which the kernel Elementwise::rope rotates
// queries and keys; rope() is the rotation in plain code, for keys that move to other positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.hpp"

namespace tessera::cpu {

// Writes the factors with which Elementwise::rope rotates a head at a position: out[i] = cosine[i] * x[i] + sine[i] * (the partner of
// x[i]). `factors` gets two arrays, the cosines and then the sines, each [2 * pairs] in the order of the head's elements. Both elements of
// a pair get the cosine and the sine of the pair's angle, times the rope's magnitude. Exception: the sine of the first element is negated.
void rope_factors(const backend::RopeTable& rope, std::uint64_t position, float* factors) noexcept;

// Rotates the first 2 * n_pairs elements of a head by the angles in `table`: [n_pairs][cos, sin].
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept;

}  // namespace tessera::cpu
