// Matrix products. Family reference-f32: out[m][n] is one chain over k ascending from 0, each product rounded to f32
// and then added (no FMA), whatever the number of rows, threads, or the vector width.
#pragma once

#include <cstddef>

#include "cpu/packed_matrix.hpp"

namespace tessera::cpu {

// Scratch of one task: a tile with room to decode it, and the accumulators of all rows.
[[nodiscard]] constexpr std::size_t linear_scratch_floats(std::size_t rows) noexcept {
  return 2 * kTileFloats + rows * kPanel;
}

// Outputs of one panel for all rows: x [rows, inputs] -> out [rows, outputs].
void linear_panel(const backend::Matrix& weight, std::size_t panel, const float* x, std::size_t rows, float* out,
                  float* scratch) noexcept;

}  // namespace tessera::cpu
