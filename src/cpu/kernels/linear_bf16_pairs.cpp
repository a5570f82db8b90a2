// Products in family bf16-pairs (bf16_pairs.hpp).
#include "cpu/kernels/bf16_pairs.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

#if defined(__AVX512BF16__)

namespace {

constexpr std::size_t kFewRows = 8, kFewPanels = 2;
constexpr std::size_t kAskingRows = 7;  // from which products take longer than memory
constexpr std::size_t kManyRows = 6, kManyPanels = 4;
constexpr std::size_t kChunk = 1024;    // k at a time with all rows: the weights of as many stay in L2
constexpr std::size_t kMostRows = 256;  // of a task

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

// Panels as they stream from memory, in pairs. Of one row one after another: a core reads one stream so much faster than
// two that it makes up for the chain.
void few_rows(const LinearJob& job) noexcept {
  const auto some = [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
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
    by_streaming_rows<kFewRows, kAskingRows, kP>(job, panel, pairs, tile);
  };
  if (job.rows == 1) return by_panels<1>(job.panels, some);
  by_panels<kFewPanels>(job.panels, some);
}

// Some k of the panels with all rows, then the next: sums wait in scratch.
template <std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  for (std::size_t k = 0; k < job.inputs; k += kChunk) {
    const std::size_t depth = job.inputs - k < kChunk ? job.inputs - k : kChunk;
    by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      std::byte* sums = job.scratch + row * kP * 64;
      F32x16 acc[kR][kP] = {};
      if (k != 0) load_sums(sums, kP, acc);
      multiply(job.weights + panel * job.panel_bytes + k * 32, job.panel_bytes, job.x + row * job.x_stride + k * 2,
               job.x_stride, (depth + 1) / 2, [](const std::byte*) TESSERA_LAMBDA {}, acc);
      store_sums(sums, kP, acc);
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

void add_linear_bf16_pairs(Kernels& kernels) noexcept {
  if (!pairs_are_as_written()) return;
  LinearPair& pair = kernels.product(Family::bf16_pairs, PackedForm::bf16);
  pair.few = {.run = few_rows, .name = "bf16 pairs, streamed", .max_rows = 32, .panels = kFewPanels};
  pair.many = {.run = many_rows, .name = "bf16 pairs, tiles", .max_rows = kMostRows, .panels = kManyPanels,
               .scratch_bytes = kMostRows * kManyPanels * 64};
  pair.many_from = pair.few.max_rows + 1;
}

#else

void add_linear_bf16_pairs(Kernels&) noexcept {}

#endif

}  // namespace tessera::cpu::TESSERA_ISA
