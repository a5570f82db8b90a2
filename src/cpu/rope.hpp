// Rotary positions (Su et al. 2021): the angles of a position, and the rotation in plain code, for keys that move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// Rotates the first 2 * n_pairs elements of a head by the angles in `table`: [n_pairs][cos, sin].
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept;
// The table of a position: angles in double, rounded once.
void rope_table(const double* frequencies, std::size_t n_pairs, std::uint64_t position, float* table) noexcept;

}  // namespace tessera::cpu
