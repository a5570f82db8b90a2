// Matrix products of families bf16 (weights in BF16, or quantised weights rounded to bf16) and bf16x3 (weights in F16), with vectors. Fused
// multiply-adds compute the same bits as AMX's tile instruction TDPBF16PS. For every 32 values of k there are two chains of additions that
// start from 0, one over the even k and one over the odd k. Their sum is added to the output. Denormals count as zeros
// (docs/reference/numerics.md).
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/decode.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace linear_bf16 {
namespace {

constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : 2;
constexpr std::size_t kAskingRows = 2;  // rows from which on products of bf16 take longer than reading the weights
constexpr std::size_t kF16Rows = 2, kF16Vectors = panel_outputs(PackedForm::f16) / kPanel;
constexpr std::size_t kF16Beside = kRegisters == 1 ? kF16Vectors : 1;  // vectors whose sums the registers hold at once
constexpr std::size_t kManyRows = 3;
constexpr std::size_t kTileVectors = kRegisters == 1 ? 4 : 1;  // vectors whose sums the registers hold at once
constexpr std::size_t kMostRows = 96;  // rows of a task, at most

template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void add_chains(const F32x16 (&even)[kR][kP], const F32x16 (&odd)[kR][kP], F32x16 (&acc)[kR][kP]) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kR * kP; ++i) {
    acc[i / kP][i % kP] = acc[i / kP][i % kP] + (even[i / kP][i % kP] + odd[i / kP][i % kP]);
  }
}

// Multiplies bf16 weights as they stream from memory, one panel after another.
void few_rows(const LinearJob& job) noexcept {
  const FlushDenormals flush;
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const auto tile = [&]<std::size_t kR>(Count<kR>, std::size_t row, auto& ask) TESSERA_LAMBDA {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      const std::byte* x = job.x + row * job.x_stride;
      F32x16 acc[kR][1] = {};
      for (std::size_t k = 0; k < job.inputs; k += 32, weights += 1024, x += 64) {
        ask.step(weights, 0, 1024);
        F32x16 even[kR][1] = {}, odd[kR][1] = {};
        TESSERA_UNROLL
        for (std::size_t pair = 0; pair < 16; ++pair) {
          const auto w = load<U32x16>(weights + 64 * pair);
          TESSERA_UNROLL
          for (std::size_t r = 0; r < kR; ++r) {
            const U32x16 value = broadcast(value_at<std::uint32_t>(x + r * job.x_stride + 4 * pair));
            even[r][0] = fma(even_of(value), even_of(w), even[r][0]);
            odd[r][0] = fma(odd_of(value), odd_of(w), odd[r][0]);
          }
        }
        add_chains(even, odd, acc);
      }
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) store_outputs(job, row + r, panel, acc[r][0]);
    };
    by_streaming_rows<kFewRows, kAskingRows, 1>(job, panel, (job.inputs + 31) / 32, tile);
  }
}

// Adds the products for 32 values of k to acc[r][p], the sums of row r and vector p of 16 outputs. `x`: the rows as floats, [row][k].
// `weights`: floats [vector][k][16 outputs].
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_stride, const std::byte* x,
                             std::size_t x_stride, F32x16 (&acc)[kR][kP]) {
  F32x16 even[kR][kP] = {}, odd[kR][kP] = {};
  const auto add = [&](std::size_t k, F32x16(&chains)[kR][kP]) TESSERA_LAMBDA {
    F32x16 w[kP];
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) w[p] = kept(load<F32x16>(weights + p * panel_stride + 64 * k));
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 value = broadcast(value_at<float>(x + r * x_stride + 4 * k));
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) chains[r][p] = fma(value, w[p], chains[r][p]);
    }
  };
  for (std::size_t k = 0; k < 32; k += 2) {
    add(k, even);
    add(k + 1, odd);
  }
  add_chains(even, odd, acc);
}

// Stores 32 bf16 as floats.
TESSERA_INLINE void widen(const std::byte* from, std::byte* to) {
  store(to, as<U32x16>(load_i16(from)) << 16);
  store(to + 64, as<U32x16>(load_i16(from + 32)) << 16);
}

// Does the same as multiply(), for F16 weights, which it splits into high and low parts: adds the products for 32 values of k to
// acc[r][v], the sums of row r and vector v of 16 outputs. `x`: floats [row][plane: high, low][k]. `weights`: the first vector, in a tile
// of an f16 panel. Calls ask(weights), which prefetches, before each two values of k.
template <std::size_t kR, std::size_t kV>
TESSERA_INLINE void multiply_f16(const std::byte* weights, const std::byte (&x)[kR][2][128], auto ask,
                                 F32x16 (&acc)[kR][kV]) {
  F32x16 even[3][kR][kV] = {}, odd[3][kR][kV] = {};  // chains of the three products: low by high parts, high by low, high by high
#pragma GCC unroll 2
  for (std::size_t k = 0; k < 32; k += 2, weights += 64 * kF16Vectors) {
    ask(weights);
    F32x16Pair w_high[kV], w_low[kV];
    TESSERA_UNROLL
    for (std::size_t v = 0; v < kV; ++v) {
      const F32x16Pair w = {load_f16(weights + 32 * v), load_f16(weights + 32 * (v + kF16Vectors))};
      w_high[v] = {high_of_f16(w.even), high_of_f16(w.odd)};
      w_low[v] = {w.even - w_high[v].even, w.odd - w_high[v].odd};  // exact, and bf16 holds it
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const auto at = [&](std::size_t plane, std::size_t i) TESSERA_LAMBDA {
        return broadcast(value_at<float>(x[r][plane] + 4 * i));
      };
      TESSERA_UNROLL
      for (std::size_t v = 0; v < kV; ++v) {
        even[0][r][v] = fma(at(1, k), w_high[v].even, even[0][r][v]);
        odd[0][r][v] = fma(at(1, k + 1), w_high[v].odd, odd[0][r][v]);
        even[1][r][v] = fma(at(0, k), w_low[v].even, even[1][r][v]);
        odd[1][r][v] = fma(at(0, k + 1), w_low[v].odd, odd[1][r][v]);
        even[2][r][v] = fma(at(0, k), w_high[v].even, even[2][r][v]);
        odd[2][r][v] = fma(at(0, k + 1), w_high[v].odd, odd[2][r][v]);
      }
    }
  }
  TESSERA_UNROLL
  for (std::size_t product = 0; product < 3; ++product) add_chains(even[product], odd[product], acc);
}

// The kernel for few rows and F16 weights: multiplies panels as they stream from memory. The weights are split into high and low parts in
// registers, which with few rows is faster than writing both parts to scratch.
void few_rows_f16(const LinearJob& job) noexcept {
  constexpr std::size_t kTileBytes = form_layout(PackedForm::f16).tile_bytes;
  const FlushDenormals flush;
  const std::size_t low = row_layout(InputForm::bf16x2, job.inputs).low;
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    by_rows<kF16Rows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      F32x16 acc[kF16Vectors / kF16Beside][kR][kF16Beside] = {};
      for (std::size_t step = 0; step < (job.inputs + 31) / 32; ++step, weights += kTileBytes) {
        if (!job.ahead.all_lines) prefetch(weights, kTileBytes, job.ahead);  // else ask() below prefetches, two lines at a time
        alignas(64) std::byte x[kR][2][128];  // [row][plane][32] floats
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          const std::byte* from = job.x + (row + r) * job.x_stride + 64 * step;
          widen(from, x[r][0]);
          widen(from + low, x[r][1]);
        }
        TESSERA_UNROLL
        for (std::size_t v = 0; v < kF16Vectors; v += kF16Beside) {
          const auto ask = [&](const std::byte* at) TESSERA_LAMBDA {
            if (v == 0) prefetch(at, 64 * kF16Vectors, job.ahead);
          };
          multiply_f16(weights + 32 * v, x, ask, acc[v / kF16Beside]);
        }
      }
      TESSERA_UNROLL
      for (std::size_t i = 0; i < kR * kF16Vectors; ++i) {
        const std::size_t r = i / kF16Vectors, v = i % kF16Vectors;
        store_outputs(job, row + r, panel * kF16Vectors + v, acc[v / kF16Beside][r][v % kF16Beside]);
      }
    });
  }
}

// Sizes for a packed form, in the kernel for many rows. kVectors: vectors of 16 outputs in a panel. kManyPanels, kManyVectors: how many
// panels, and vectors of these panels, are decoded at a time. kPlanes: planes of a row and of the weights. F16 has two planes (high
// parts: the numbers rounded to bf16; low parts: what rounding lost), other forms one.
template <PackedForm kForm>
struct Decoded {
  static constexpr std::size_t kVectors = panel_outputs(kForm) / kPanel;
  static constexpr std::size_t kManyPanels = kTileVectors > kVectors ? kTileVectors / kVectors : 1;
  static constexpr std::size_t kManyVectors = kManyPanels * kVectors;
  static constexpr std::size_t kPlanes = kForm == PackedForm::f16 ? 2 : 1;
  static constexpr std::size_t kXAt = kMostRows * kManyVectors * 64, kXBytes = kPlanes * 128;
};

// Multiplies kP panels by all rows of a job, 32 values of k at a time: decodes the weights for these k to scratch, multiplies them by all
// rows, and goes on to the next 32. Scratch: sums [rows][vectors][16 outputs]; x [rows][planes][32 values of k]; weights
// [vectors][planes][32 values of k][16 outputs].
template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  using From = Decoded<kForm>;
  constexpr std::size_t kPlanes = From::kPlanes, kXBytes = From::kXBytes, kStride = kPlanes * kPlaneBytes;
  constexpr std::size_t kV = kP * From::kVectors, kBeside = kV < kTileVectors ? kV : kTileVectors, kTiles = kV / kBeside;
  std::byte* x = job.scratch + From::kXAt;
  std::byte* weights = x + kMostRows * kXBytes;
  const std::size_t low = row_layout(InputForm::bf16x2, job.inputs).low;
  const std::size_t steps = (job.inputs + 31) / 32;
  const std::size_t asked = kP * job.panel_bytes <= kMostAhead ? job.panel_bytes : 0;
  Upcoming upcoming(job, panel, kP, job.panel_bytes, asked, job.rows * steps * kTiles);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t p = 0; p < kP; ++p) {
      decode<kForm>(job.weights + (panel + p) * job.panel_bytes, step, weights + p * From::kVectors * kStride);
    }
    for (std::size_t row = 0; row < job.rows; ++row) {
      const std::byte* from = job.x + row * job.x_stride + 64 * step;
      widen(from, x + row * kXBytes);
      if constexpr (kPlanes == 2) widen(from + low, x + row * kXBytes + 128);
    }
    by_panels<kBeside>(kV, [&]<std::size_t kT>(Count<kT>, std::size_t v) TESSERA_LAMBDA {
      const std::byte* w = weights + v * kStride;
      by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        upcoming.step(kR);
        std::byte* sums = job.scratch + (row * kV + v) * 64;
        const std::byte* rows = x + row * kXBytes;
        F32x16 acc[kR][kT] = {};
        if (step != 0) load_sums(sums, kV, acc);
        if constexpr (kPlanes == 2) {
          multiply(w, kStride, rows + 128, kXBytes, acc);
          multiply(w + kPlaneBytes, kStride, rows, kXBytes, acc);
        }
        multiply(w, kStride, rows, kXBytes, acc);
        store_sums(sums, kV, acc);
      });
    });
  }
  store_all_outputs<kV>(job, panel * From::kVectors);
}

template <PackedForm kForm>
void many_rows(const LinearJob& job) noexcept {
  const FlushDenormals flush;
  by_panels<Decoded<kForm>::kManyPanels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    some_panels<kForm, kP>(job, panel);
  });
}

template <PackedForm kForm>
void add(Kernels& kernels, Family family) noexcept {
  using From = Decoded<kForm>;
  constexpr std::size_t kDecodedBytes = From::kManyVectors * From::kPlanes * kPlaneBytes;
  LinearPair& pair = kernels.product(family, kForm);
  pair.many = {.run = many_rows<kForm>, .name = "bf16 chains, decoded", .max_rows = kMostRows,
               .panels = From::kManyPanels, .scratch_bytes = From::kXAt + kMostRows * From::kXBytes + kDecodedBytes};
  pair.few = pair.many;
  pair.many_from = 1;
}

}  // namespace
}  // namespace linear_bf16

void add_linear_bf16(Kernels& kernels) noexcept {
  using namespace linear_bf16;
  add<PackedForm::bf16>(kernels, Family::bf16);
  LinearPair& bf16 = kernels.product(Family::bf16, PackedForm::bf16);
  bf16.few = {.run = few_rows, .name = "bf16 chains, streamed", .max_rows = 4 * kFewRows};
  bf16.many_from = kFewRows + 1;
  add<PackedForm::f16>(kernels, Family::bf16x3);
  LinearPair& f16 = kernels.product(Family::bf16x3, PackedForm::f16);
  f16.few = {.run = few_rows_f16, .name = "bf16 chains, f16 streamed as two", .max_rows = 2 * kF16Rows};
  f16.many_from = f16.few.max_rows + 1;
  add<PackedForm::block32_4>(kernels, Family::bf16);
  add<PackedForm::block32_4_min>(kernels, Family::bf16);
  add<PackedForm::block32_5>(kernels, Family::bf16);
  add<PackedForm::block32_5_min>(kernels, Family::bf16);
  add<PackedForm::block32_8>(kernels, Family::bf16);
  add<PackedForm::block256_4>(kernels, Family::bf16);
  add<PackedForm::block256_5>(kernels, Family::bf16);
  add<PackedForm::block256_6>(kernels, Family::bf16);
}

}  // namespace tessera::cpu::TESSERA_ISA
