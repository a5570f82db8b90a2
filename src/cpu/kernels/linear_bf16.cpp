// Families bf16 and bf16x3: the chains that a tile instruction (TDPBF16PS) has, by fused multiply-adds. Every 32 k two
// chains from 0, over the even and the odd k, are added to the output; denormals count as zeros (docs/numerics.md).
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/decode.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : 2;
constexpr std::size_t kAskingRows = 2;  // from which products of bf16 take longer than memory
constexpr std::size_t kF16Rows = 2, kF16Panels = kRegisters == 1 ? 2 : 1;
constexpr std::size_t kManyRows = 3;
constexpr std::size_t kManyPanels = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kMostRows = 96;  // of a task

template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void add_chains(const F32x16 (&even)[kR][kP], const F32x16 (&odd)[kR][kP], F32x16 (&acc)[kR][kP]) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kR * kP; ++i) {
    acc[i / kP][i % kP] = acc[i / kP][i % kP] + (even[i / kP][i % kP] + odd[i / kP][i % kP]);
  }
}

// bf16 weights as they stream from memory, one panel after another.
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

// acc[r][p] += one step of 32 k: x [r][32] floats, weights [p][32][16] floats.
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

// 32 bf16 as floats.
TESSERA_INLINE void widen(const std::byte* from, std::byte* to) {
  store(to, as<U32x16>(load_u16(from)) << 16);
  store(to + 64, as<U32x16>(load_u16(from + 32)) << 16);
}

// Panels of f16 as they stream from memory, for so few rows that it costs less to split the weights in registers than to
// write both halves out.
void few_rows_f16(const LinearJob& job) noexcept {
  const FlushDenormals flush;
  const std::size_t low = row_layout(InputForm::bf16x2, job.inputs).low;
  by_panels<kF16Panels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    by_rows<kF16Rows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      F32x16 acc[kR][kP] = {};
      for (std::size_t step = 0; step < (job.inputs + 31) / 32; ++step) {
        alignas(64) std::byte x[kR][2][128];  // [row][plane][32] floats
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          const std::byte* from = job.x + (row + r) * job.x_stride + 64 * step;
          widen(from, x[r][0]);
          widen(from + low, x[r][1]);
        }
        F32x16 even[3][kR][kP] = {}, odd[3][kR][kP] = {};  // of the three products
#pragma GCC unroll 2
        for (std::size_t k = 0; k < 32; k += 2, weights += 64) {
          F32x16Pair w_high[kP], w_low[kP];
          TESSERA_UNROLL
          for (std::size_t p = 0; p < kP; ++p) {
            const std::byte* from = weights + p * job.panel_bytes;
            prefetch(from, 64, job.ahead);
            const F32x16Pair w = {load_f16(from), load_f16(from + 32)};
            w_high[p] = {high_of_f16(w.even), high_of_f16(w.odd)};
            w_low[p] = {w.even - w_high[p].even, w.odd - w_high[p].odd};  // exact, and few enough bits
          }
          TESSERA_UNROLL
          for (std::size_t r = 0; r < kR; ++r) {
            const auto at = [&](std::size_t plane, std::size_t i) TESSERA_LAMBDA {
              return broadcast(value_at<float>(x[r][plane] + 4 * i));
            };
            TESSERA_UNROLL
            for (std::size_t p = 0; p < kP; ++p) {
              even[0][r][p] = fma(at(1, k), w_high[p].even, even[0][r][p]);
              odd[0][r][p] = fma(at(1, k + 1), w_high[p].odd, odd[0][r][p]);
              even[1][r][p] = fma(at(0, k), w_low[p].even, even[1][r][p]);
              odd[1][r][p] = fma(at(0, k + 1), w_low[p].odd, odd[1][r][p]);
              even[2][r][p] = fma(at(0, k), w_high[p].even, even[2][r][p]);
              odd[2][r][p] = fma(at(0, k + 1), w_high[p].odd, odd[2][r][p]);
            }
          }
        }
        TESSERA_UNROLL
        for (std::size_t product = 0; product < 3; ++product) add_chains(even[product], odd[product], acc);
      }
      TESSERA_UNROLL
      for (std::size_t i = 0; i < kR * kP; ++i) store_outputs(job, row + i / kP, panel + i % kP, acc[i / kP][i % kP]);
    });
  });
}

// In scratch: [rows][panels][16] sums; [rows][planes][32] x; [panels][planes][32][16] weights. A step of 32 k is
// decoded, multiplied with all rows, then the next. F16 has two planes: what bf16 holds of a number, and the rest.
constexpr std::size_t kXAt = kMostRows * kManyPanels * 64;

template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  constexpr std::size_t kPlanes = kForm == PackedForm::f16 ? 2 : 1, kXBytes = kPlanes * 128;
  constexpr std::size_t kStride = kPlanes * kPlaneBytes;
  std::byte* x = job.scratch + kXAt;
  std::byte* weights = x + kMostRows * kXBytes;
  const std::size_t low = row_layout(InputForm::bf16x2, job.inputs).low;
  const std::size_t steps = (job.inputs + 31) / 32;
  const std::size_t asked = kP * job.panel_bytes <= kMostAhead ? job.panel_bytes : 0;
  Upcoming upcoming(job, panel, kP, job.panel_bytes, asked, job.rows * steps);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t p = 0; p < kP; ++p) {
      decode<kForm>(job.weights + (panel + p) * job.panel_bytes, step, weights + p * kStride);
    }
    for (std::size_t row = 0; row < job.rows; ++row) {
      const std::byte* from = job.x + row * job.x_stride + 64 * step;
      widen(from, x + row * kXBytes);
      if constexpr (kPlanes == 2) widen(from + low, x + row * kXBytes + 128);
    }
    by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      upcoming.step(kR);
      std::byte* sums = job.scratch + row * kP * 64;
      const std::byte* rows = x + row * kXBytes;
      F32x16 acc[kR][kP] = {};
      if (step != 0) load_sums(sums, kP, acc);
      if constexpr (kPlanes == 2) {
        multiply(weights, kStride, rows + 128, kXBytes, acc);
        multiply(weights + kPlaneBytes, kStride, rows, kXBytes, acc);
      }
      multiply(weights, kStride, rows, kXBytes, acc);
      store_sums(sums, kP, acc);
    });
  }
  store_all_outputs<kP>(job, panel);
}

template <PackedForm kForm>
void many_rows(const LinearJob& job) noexcept {
  const FlushDenormals flush;
  by_panels<kManyPanels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    some_panels<kForm, kP>(job, panel);
  });
}

template <PackedForm kForm>
void add(Kernels& kernels, Family family) noexcept {
  constexpr std::size_t kPlanes = kForm == PackedForm::f16 ? 2 : 1;
  LinearPair& pair = kernels.product(family, kForm);
  pair.many = {.run = many_rows<kForm>, .name = "bf16 chains, decoded", .max_rows = kMostRows, .panels = kManyPanels,
               .scratch_bytes = kXAt + kPlanes * (kMostRows * 128 + kManyPanels * kPlaneBytes)};
  pair.few = pair.many;
  pair.many_from = 1;
}

}  // namespace

void add_linear_bf16(Kernels& kernels) noexcept {
  add<PackedForm::bf16>(kernels, Family::bf16);
  LinearPair& bf16 = kernels.product(Family::bf16, PackedForm::bf16);
  bf16.few = {.run = few_rows, .name = "bf16 chains, streamed", .max_rows = 4 * kFewRows};
  bf16.many_from = kFewRows + 1;
  add<PackedForm::f16>(kernels, Family::bf16x3);
  LinearPair& f16 = kernels.product(Family::bf16x3, PackedForm::f16);
  f16.few = {.run = few_rows_f16, .name = "bf16 chains, f16 streamed as two", .max_rows = 2 * kF16Rows, .panels = kF16Panels};
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
