// Matrix products of family bf16-pairs: weights in BF16 times rows in BF16, by the instruction VDPBF16PS (bf16_pairs.hpp).
#include "cpu/kernels/bf16_pairs.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

#if defined(__AVX512BF16__)

namespace linear_bf16_pairs {
namespace {

constexpr std::size_t kRows = 8, kPanels = 2;   // rows and panels of a tile, at most
constexpr std::size_t kAskingRows = 7;          // rows from which on products take longer than reading the weights
constexpr std::size_t kMostRows = 256;          // rows of a task, at most

// Adds the products for `pairs` pairs of k to acc[r][p], the sum of row r and panel p. Calls step(weights), which prefetches, at each pair.
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

// Multiplies the job's rows by its panels, directly as they are packed, without a copy in scratch. With few rows the weights come from
// memory. With many rows each tile of rows reads the weights again, from L2, which can hold two panels of 14,336 inputs.
//
// If all rows fit one tile, panels are multiplied one after another. Two panels side by side would give each row two chains of additions
// at a time instead of one, but a core reads one stream of weights much faster than two, and that matters more. If there are more rows,
// two panels are multiplied side by side, so that each pair of k that is loaded from a row is used twice.
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
}  // namespace linear_bf16_pairs

void add_linear_bf16_pairs(Kernels& kernels) noexcept {
  using namespace linear_bf16_pairs;
  if (!pairs_are_as_written()) return;
  kernels.product(Family::bf16_pairs, PackedForm::bf16).few = {
      .run = all_rows, .name = "bf16 pairs, streamed", .max_rows = kMostRows, .panels = kPanels};
}

#else

void add_linear_bf16_pairs(Kernels&) noexcept {}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
