// Family f32: one chain of fused multiply-adds over k for each output (docs/numerics.md).
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : kRegisters == 2 ? 4 : 2;
constexpr std::size_t kManyRows = kRegisters < 4 ? 6 : 4;
constexpr std::size_t kManyPanels = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kChunk = 128;    // k: the weights of a chunk stay in L1
constexpr std::size_t kMostRows = 96;  // of a task

// acc[r][p] += rows r times panels p over k of `depth`.
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_bytes, const std::byte* x,
                             std::size_t x_stride, std::size_t depth, F32x16 (&acc)[kR][kP]) {
  for (std::size_t k = 0; k < depth; ++k, weights += 64, x += 4) {
    if constexpr (kP == 1) __builtin_prefetch(weights + kPrefetchAhead);
    F32x16 w[kP];
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) w[p] = load<F32x16>(weights + p * panel_bytes);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 value = broadcast(value_at<float>(x + r * x_stride));
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) acc[r][p] = fma(value, w[p], acc[r][p]);
    }
  }
}

// Panels one after another, as they stream from memory.
void few_rows(const LinearJob& job) noexcept {
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* weights = job.weights + panel * job.panel_bytes;
    by_rows<kFewRows>(0, job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      F32x16 acc[kR][1] = {};
      multiply(weights, 0, job.x + row * job.x_stride, job.x_stride, job.inputs, acc);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) store_outputs(job, row + r, panel, acc[r][0]);
    });
  }
}

// Some k of the panels with all rows, then the next: sums wait in scratch.
template <std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  const std::byte* weights = job.weights + panel * job.panel_bytes;
  for (std::size_t k = 0; k < job.inputs; k += kChunk) {
    const std::size_t depth = job.inputs - k < kChunk ? job.inputs - k : kChunk;
    by_rows<kManyRows>(0, job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      std::byte* sums = job.scratch + row * kP * 64;
      F32x16 acc[kR][kP] = {};
      if (k != 0) load_sums(sums, acc);
      multiply(weights + k * 64, job.panel_bytes, job.x + row * job.x_stride + k * 4, job.x_stride, depth, acc);
      store_sums(sums, acc);
    });
  }
  store_all_outputs<kP>(job, panel);
}

void many_rows(const LinearJob& job) noexcept {
  by_panels<kManyPanels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    some_panels<kP>(job, panel);
  });
}

}  // namespace

void add_linear_f32(Kernels& kernels) noexcept {
  LinearPair& pair = kernels.product(Family::f32, PackedForm::f32);
  pair.few = {.run = few_rows, .name = "f32, streamed", .max_rows = 4 * kFewRows};
  pair.many = {.run = many_rows, .name = "f32, tiles", .max_rows = kMostRows, .panels = kManyPanels,
               .scratch_bytes = kMostRows * kManyPanels * 64};
  pair.many_from = kFewRows + 1;
}

}  // namespace tessera::cpu::TESSERA_ISA
