// Rotary positions (Su et al. 2021): the factors by which kernels rotate, and the rotation in plain code, for keys that move to other
// positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.hpp"

namespace tessera::cpu {

// Writes the factors of a rotation for Elementwise::rope. First a cosine for each element (of its pair's angle), which multiplies the
// element. Then a sine for each element, which multiplies the element's partner (negative for a pair's first element). Each array is [2 *
// pairs], in the order of the elements.
void rope_factors(const backend::RopeTable& rope, std::uint64_t position, float* factors) noexcept;

// Rotates the first 2 * n_pairs elements of a head by the angles in `table`: [n_pairs][cos, sin].
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept;

}  // namespace tessera::cpu
