// Family f32: one chain of fused multiply-adds over k for each output (docs/numerics.md). Weights of 16 bits are floats as
// soon as they are read.
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : kRegisters == 2 ? 4 : 2;
constexpr std::size_t kManyRows = kRegisters < 4 ? 6 : 4;
constexpr std::size_t kManyPanels = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kStreamedRows = 32;
constexpr std::size_t kMostRows = 256;  // of a task: halves become floats once for all of them
// k at a time with all rows: the weights of as many stay in L2, and sums wait in scratch seldom.
constexpr std::size_t kChunk = kRegisters == 1 ? 512 : 256;

// Of a panel of a form: bytes of two k, and what streaming takes. One panel's chain, of four cycles a k, is no slower
// than memory in F32; of halves there are twice as many, so that two panels of a few rows are faster than one.
template <PackedForm kForm>
struct Streamed {
  static constexpr bool kHalves = kForm != PackedForm::f32;  // of 32 bits
  static constexpr std::size_t kPairBytes = kHalves ? 64 : 128;
  static constexpr std::size_t kPanels = kHalves ? 2 : 1;
  static constexpr std::size_t kRows = kHalves && kRegisters > 1 ? kFewRows / 2 : kFewRows;
  static constexpr std::size_t kAskingRows = kHalves ? 3 : 5;  // from which products take longer than memory

  TESSERA_INLINE F32x16Pair pair(const std::byte* at) {
    if constexpr (kForm == PackedForm::f16) {
      return {load_f16(at), load_f16(at + 32)};
    } else if constexpr (kForm == PackedForm::bf16) {
      const auto pairs = kept(load<U32x16>(at));
      return {kept(even_of(pairs)), kept(odd_of(pairs))};  // else g++ has too few registers in avx2
    } else {
      return {load<F32x16>(at), load<F32x16>(at + 64)};
    }
  }
};

// Rows r times panels p as they stream from memory: acc[r][p]; step() at each pair of k.
template <PackedForm kForm, std::size_t kR, std::size_t kP>
TESSERA_INLINE void stream(const std::byte* weights, std::size_t panel_bytes, const std::byte* x, std::size_t x_stride,
                           std::size_t inputs, auto step, F32x16 (&acc)[kR][kP]) {
  using From = Streamed<kForm>;
  const auto add = [&](std::size_t r, std::size_t p, const std::byte* at, F32x16 w) TESSERA_LAMBDA {
    acc[r][p] = fma(broadcast(value_at<float>(at + r * x_stride)), w, acc[r][p]);
  };
  for (std::size_t k = 0; k < inputs; k += 2, weights += From::kPairBytes, x += 8) {
    step(weights);
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) {
      const std::byte* at = weights + p * panel_bytes;
      if (k + 1 == inputs) {  // F32 has nothing beyond it
        const F32x16 last = From::kHalves ? From::pair(at).even : load<F32x16>(at);
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) add(r, p, x, last);
        continue;
      }
      const F32x16Pair w = From::pair(at);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) add(r, p, x, w.even);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) add(r, p, x + 4, w.odd);
    }
  }
}

// Panels one after another or in pairs. Of one row always one after another: a core reads one stream so much faster than
// two that it makes up for the chain.
template <PackedForm kForm>
void few_rows(const LinearJob& job) noexcept {
  using From = Streamed<kForm>;
  const auto multiply = [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    const std::byte* weights = job.weights + panel * job.panel_bytes;
    const auto tile = [&]<std::size_t kR>(Count<kR>, std::size_t row, auto& ask) TESSERA_LAMBDA {
      const auto step = [&](const std::byte* at) TESSERA_LAMBDA { ask.step(at, job.panel_bytes, From::kPairBytes); };
      F32x16 acc[kR][kP] = {};
      stream<kForm>(weights, job.panel_bytes, job.x + row * job.x_stride, job.x_stride, job.inputs, step, acc);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        TESSERA_UNROLL
        for (std::size_t p = 0; p < kP; ++p) store_outputs(job, row + r, panel + p, acc[r][p]);
      }
    };
    by_streaming_rows<From::kRows, From::kAskingRows, kP, true>(job, panel, (job.inputs + 1) / 2, tile);
  };
  if (job.rows == 1) return by_panels<1>(job.panels, multiply);
  by_panels<From::kPanels>(job.panels, multiply);
}

// acc[r][p] += rows r times panels p over k of `depth`: floats, [k][16] of each panel.
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_stride, const std::byte* x,
                             std::size_t x_stride, std::size_t depth, F32x16 (&acc)[kR][kP]) {
  for (std::size_t k = 0; k < depth; ++k, weights += 64, x += 4) {
    F32x16 w[kP];
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) w[p] = load<F32x16>(weights + p * panel_stride);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 value = broadcast(value_at<float>(x + r * x_stride));
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) acc[r][p] = fma(value, w[p], acc[r][p]);
    }
  }
}

constexpr std::size_t kAccBytes = kMostRows * kManyPanels * 64;
constexpr std::size_t kChunkBytes = kChunk * 64;  // of a panel, as floats

// Some k of the panels with all rows, then the next: sums wait in scratch, halves become floats there.
template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  constexpr bool kAsks = Streamed<kForm>::kHalves || kManyPanels == 1;  // F32 in four panels comes as fast unasked
  for (std::size_t k = 0; k < job.inputs; k += kChunk) {
    const std::size_t depth = job.inputs - k < kChunk ? job.inputs - k : kChunk;
    const std::size_t at = k / 2 * Streamed<kForm>::kPairBytes, chunk = kChunk / 2 * Streamed<kForm>::kPairBytes;
    const std::byte* weights = job.weights + panel * job.panel_bytes + at;
    std::size_t stride = job.panel_bytes;
    Upcoming upcoming(job, panel, kP, k + kChunk < job.inputs ? at + chunk : job.panel_bytes, chunk, job.rows);
    if constexpr (Streamed<kForm>::kHalves) {
      std::byte* floats = job.scratch + kAccBytes;
      for (std::size_t p = 0; p < kP; ++p) {
        const std::byte* from = weights + p * job.panel_bytes;
        for (std::size_t i = 0; i < depth; i += 2, from += 64) {
          const F32x16Pair pair = Streamed<kForm>::pair(from);
          store(floats + p * kChunkBytes + i * 64, pair.even);
          store(floats + p * kChunkBytes + i * 64 + 64, pair.odd);
        }
      }
      weights = floats;
      stride = kChunkBytes;
    }
    by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      if constexpr (kAsks) upcoming.step(kR);
      std::byte* sums = job.scratch + row * kP * 64;
      F32x16 acc[kR][kP] = {};
      if (k != 0) load_sums(sums, kP, acc);
      multiply(weights, stride, job.x + row * job.x_stride + k * 4, job.x_stride, depth, acc);
      store_sums(sums, kP, acc);
    });
  }
  store_all_outputs<kP>(job, panel);
}

template <PackedForm kForm>
void many_rows(const LinearJob& job) noexcept {
  by_panels<kManyPanels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    some_panels<kForm, kP>(job, panel);
  });
}

// Rows from which it pays to have weights as floats in memory, measured; streamed, halves are converted tile by tile.
template <PackedForm kForm>
constexpr std::size_t many_from() noexcept {
  if (Streamed<kForm>::kHalves && kRegisters > 2) return 5;
  return kForm == PackedForm::bf16 && kRegisters == 2 ? 17 : kStreamedRows + 1;
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  using From = Streamed<kForm>;
  LinearPair& pair = kernels.product(Family::f32, kForm);
  pair.few = {.run = few_rows<kForm>, .name = "f32, streamed", .max_rows = kStreamedRows, .panels = From::kPanels};
  pair.many = {.run = many_rows<kForm>, .name = "f32, tiles", .max_rows = kMostRows, .panels = kManyPanels,
               .scratch_bytes = kAccBytes + (From::kHalves ? kManyPanels * kChunkBytes : 0)};
  pair.many_from = many_from<kForm>();
}

}  // namespace

void add_linear_f32(Kernels& kernels) noexcept {
  add<PackedForm::f32>(kernels);
  add<PackedForm::f16>(kernels);
  add<PackedForm::bf16>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
