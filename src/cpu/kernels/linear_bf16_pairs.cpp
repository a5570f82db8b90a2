// Products in family bf16-pairs (bf16_pairs.hpp).
#include "cpu/kernels/bf16_pairs.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

#if defined(__AVX512BF16__)

namespace {

constexpr std::size_t kRows = 8, kPanels = 2;   // of a tile
constexpr std::size_t kAskingRows = 7;          // from which products take longer than memory
constexpr std::size_t kMostRows = 256;          // of a task

// acc[r][p] += rows r times panels p over `pairs` pairs of k; step() at each.
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_bytes, const std::byte* x,
                             std::size_t x_stride, std::size_t pairs, auto step, F32x16 (&acc)[kR][kP]) {
  for (std::size_t pair = 0; pair < pairs; ++pair, weights += 64, x += 4) {
    step(weights);
    U32x16 w[kP];
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) w[p] = load<U32x16>(weights + p * panel_bytes);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const auto value = value_at<std::uint32_t>(x + r * x_stride);
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) acc[r][p] = dot_pairs(acc[r][p], w[p], value);
    }
  }
}

// Panels as they stream from memory, or for many rows from L2 (of 14,336 inputs a pair is as large). Of one tile of rows one
// after another: a core reads one stream so much faster than two that it makes up for a row's single chain. Of more in
// pairs, which multiply twice by each pair of a row that is loaded.
void all_rows(const LinearJob& job) noexcept {
  const auto side_by_side = [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    const std::size_t pairs = (job.inputs + 1) / 2;
    const auto tile = [&]<std::size_t kR>(Count<kR>, std::size_t row, auto& ask) TESSERA_LAMBDA {
      const auto step = [&](const std::byte* at) TESSERA_LAMBDA { ask.step(at, job.panel_bytes, 64); };
      F32x16 acc[kR][kP] = {};
      multiply(job.weights + panel * job.panel_bytes, job.panel_bytes, job.x + row * job.x_stride, job.x_stride,
               pairs, step, acc);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        TESSERA_UNROLL
        for (std::size_t p = 0; p < kP; ++p) store_outputs(job, row + r, panel + p, acc[r][p]);
      }
    };
    by_streaming_rows<kRows, kAskingRows, kP>(job, panel, pairs, tile);
  };
  if (job.rows <= kRows) return by_panels<1>(job.panels, side_by_side);
  by_panels<kPanels>(job.panels, side_by_side);
}

}  // namespace

void add_linear_bf16_pairs(Kernels& kernels) noexcept {
  if (!pairs_are_as_written()) return;
  kernels.product(Family::bf16_pairs, PackedForm::bf16).few = {
      .run = all_rows, .name = "bf16 pairs, streamed", .max_rows = kMostRows, .panels = kPanels};
}

#else

void add_linear_bf16_pairs(Kernels&) noexcept {}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
