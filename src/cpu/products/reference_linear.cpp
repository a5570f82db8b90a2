#include "cpu/products/reference_linear.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/products/packed_matrix.hpp"
#include "cpu/vector.hpp"

namespace tessera::cpu {

namespace {

constexpr std::size_t kMaxRows = 128;
constexpr std::size_t kMaxDepth = 256;  // the most values of k in a tile
constexpr std::size_t kMaxTile = kMaxDepth * kPanel;  // floats; enough for f16 too, whose tiles have 32 outputs but only 32 values of k

// Adds x[r][k] * tile[k][0..16) to acc[r][16], for R rows at once, k ascending. Each addition waits for the one before it in its vector
// of sums; the R * 4 vectors do not depend on each other, so the CPU overlaps them.
template <std::size_t R>
void multiply_tile(const float* tile, std::size_t width, std::size_t depth, const float* x, std::size_t x_stride,
                   float* acc) noexcept {
  Vec4 sum[R][4];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t i = 0; i < 4; ++i) sum[r][i] = load4(acc + r * kPanel + 4 * i);
  }
  for (std::size_t k = 0; k < depth; ++k) {
    const float* w = tile + k * width;
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

template <PackedForm form>
void multiply(const LinearJob& job) noexcept {
  constexpr FormLayout layout = form_layout(form);
  constexpr std::size_t depth_at_once = form == PackedForm::f32 ? kMaxDepth : layout.block_values;
  const auto* x = reinterpret_cast<const float*>(job.x);
  const std::size_t x_stride = job.x_stride / sizeof(float);
  auto* decoded = reinterpret_cast<float*>(job.scratch);  // [depth][outputs]
  float* sums = decoded + kMaxTile;                       // [half][rows][16]
  constexpr std::size_t halves = layout.outputs / kPanel;
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* weights = job.weights + panel * job.panel_bytes;
    std::fill_n(sums, halves * job.rows * kPanel, 0.0f);
    for (std::size_t k0 = 0; k0 < job.inputs; k0 += depth_at_once) {
      const std::size_t depth = std::min(depth_at_once, job.inputs - k0);
      const std::byte* tile = weights + k0 / layout.block_values * layout.tile_bytes;
      const float* w = decoded;
      if constexpr (form == PackedForm::f32) {
        w = reinterpret_cast<const float*>(tile);
      } else {
        decode_tile(form, tile, decoded);
      }
      for (std::size_t half = 0; half < halves; ++half, w += kPanel) {
        float* acc = sums + half * job.rows * kPanel;
        const auto rows = [&]<std::size_t R>(std::integral_constant<std::size_t, R>, std::size_t m) {
          multiply_tile<R>(w, layout.outputs, depth, x + m * x_stride + k0, x_stride, acc + m * kPanel);
        };
        std::size_t m = 0;
        for (; m + 2 <= job.rows; m += 2) rows(std::integral_constant<std::size_t, 2>{}, m);
        if (m < job.rows) rows(std::integral_constant<std::size_t, 1>{}, m);
      }
    }
    for (std::size_t half = 0; half < halves; ++half) {
      const std::size_t column = panel * layout.outputs + half * kPanel;
      if (column >= job.outputs) break;
      const std::size_t present = std::min(kPanel, job.outputs - column);
      for (std::size_t m = 0; m < job.rows; ++m) {
        const float* from = sums + (half * job.rows + m) * kPanel;
        std::memcpy(job.out + m * job.out_stride + column, from, present * sizeof(float));
      }
    }
  }
}

}  // namespace

void add_reference_kernels(Kernels& kernels) noexcept {
  const auto add = [&]<std::size_t form>(std::integral_constant<std::size_t, form>) {
    constexpr auto packed = static_cast<PackedForm>(form);
    constexpr std::size_t scratch = kMaxTile + kMaxRows * panel_outputs(packed);
    kernels.product(Family::reference, packed).few = {.run = multiply<packed>,
                                                      .name = "portable, tiles decoded to f32",
                                                      .max_rows = kMaxRows,
                                                      .panels = 1,
                                                      .scratch_bytes = scratch * sizeof(float)};
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add(std::integral_constant<std::size_t, i>{}), ...);
  }(std::make_index_sequence<formats::kPackedForms>{});
}

}  // namespace tessera::cpu
