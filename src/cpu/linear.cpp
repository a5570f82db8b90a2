#include "cpu/linear.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/vector.hpp"

namespace tessera::cpu {

namespace {

// acc[r][16] += x[r][k] * tile[k][16], k ascending, for R rows at once: R * 4 chains hide the additions' latency.
template <std::size_t R>
void multiply_tile(const float* tile, std::size_t depth, const float* x, std::size_t x_stride, float* acc) noexcept {
  Vec4 sum[R][4];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t i = 0; i < 4; ++i) sum[r][i] = load4(acc + r * kPanel + 4 * i);
  }
  for (std::size_t k = 0; k < depth; ++k) {
    const float* w = tile + k * kPanel;
    for (std::size_t r = 0; r < R; ++r) {
      const float value = x[r * x_stride + k];
      const Vec4 broadcast = {value, value, value, value};
      for (std::size_t i = 0; i < 4; ++i) sum[r][i] = sum[r][i] + broadcast * load4(w + 4 * i);
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t i = 0; i < 4; ++i) store4(acc + r * kPanel + 4 * i, sum[r][i]);
  }
}

}  // namespace

void linear_panel(const backend::Matrix& weight, std::size_t panel, const float* x, std::size_t rows, float* out,
                  float* scratch) noexcept {
  const std::size_t inputs = weight.shape.inputs;
  const std::size_t outputs = weight.shape.outputs;
  float* acc = scratch + 2 * kTileFloats;  // [rows][16]
  std::fill_n(acc, rows * kPanel, 0.0f);
  for (std::size_t k0 = 0; k0 < inputs; k0 += kDepth) {
    const std::size_t depth = std::min(kDepth, inputs - k0);
    const float* w = tile(weight, panel, k0, depth, scratch);
    std::size_t m = 0;
    for (; m + 2 <= rows; m += 2) multiply_tile<2>(w, depth, x + m * inputs + k0, inputs, acc + m * kPanel);
    if (m < rows) multiply_tile<1>(w, depth, x + m * inputs + k0, inputs, acc + m * kPanel);
  }
  const std::size_t first = panel * kPanel;
  const std::size_t present = std::min(kPanel, outputs - first);
  for (std::size_t m = 0; m < rows; ++m) {
    std::memcpy(out + m * outputs + first, acc + m * kPanel, present * sizeof(float));
  }
}

}  // namespace tessera::cpu
