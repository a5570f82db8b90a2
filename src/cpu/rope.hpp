// Rotary positions (Su et al. 2021): the rotation in plain code, for keys that move.
#pragma once

#include <cstddef>

namespace tessera::cpu {

// Rotates the first 2 * n_pairs elements of a head by the angles in `table`: [n_pairs][cos, sin].
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept;

}  // namespace tessera::cpu
