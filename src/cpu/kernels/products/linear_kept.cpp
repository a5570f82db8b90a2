// Matrix products of families int8 and bf16 with weights in kept packed forms (the file's own blocks: Q2_K, IQ4_NL, MXFP4 and others). A
// tile of 16 outputs is opened once (open_kept.hpp), into integers and scales, and multiplied by all rows of the task. For one row
// there are kernels that open no tile (kept_row.hpp, grid_row.hpp). The order of arithmetic is that of the family
// (docs/reference/numerics.md).
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/grid_row.hpp"
#include "cpu/kernels/products/kept_row.hpp"
#include "cpu/kernels/products/open_kept.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"
#include "cpu/products/open_tile.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace linear_kept {
namespace {

constexpr std::size_t kTileRows = kRegisters == 1 ? 6 : 2;  // rows that are multiplied at once, limited by the registers
constexpr std::size_t kMostRows = 256;                      // rows of a task, at most
constexpr std::size_t kAccBytes = kMostRows * 64;
constexpr std::size_t kMostK = 256;  // k of a tile, at most

// Adds the products of rows r with kGroups groups of four values of k of an open tile, from group g on, to dot[r].
template <unsigned kBits, std::size_t kGroups, std::size_t kR>
TESSERA_INLINE void add_dots(const OpenTile& open, std::size_t g, const std::byte* q, std::size_t stride,
                             I32x16 (&dot)[kR][1]) {
  multiply_groups<kBits, kGroups>(
      [&](std::size_t, std::size_t i) TESSERA_LAMBDA { return load<U8x64>(open.q[g + i]); }, q, stride, dot);
}

// ---- int8: small blocks ----

// Adds the products of rows r with a tile to acc[r], by one fused multiply-add of floats for each 16 or 32 values of k that share a scale.
template <PackedForm kForm, std::size_t kR>
TESSERA_INLINE void multiply_small(const LinearJob& job, const OpenTile& open, std::size_t row, std::size_t k,
                                   F32x16 (&acc)[kR][1]) {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr std::size_t kValues = form_layout(kForm).block_values, kStep = kIntegers.sub;
  const RowLayout layout = row_layout(InputForm::int8x32, job.inputs);
  const std::byte* x = job.x + row * job.x_stride;
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kValues; i += kStep) {
    const std::size_t block = (k + i) / 32;
    I32x16 dot[kR][1];
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const auto sum = value_at<std::int32_t>(x + r * job.x_stride + layout.sums + 4 * block);
      dot[r][0] = kStep == 32 ? start<kIntegers.bits, kIntegers.offset>(sum) : broadcast(0);
    }
    if constexpr (kStep == 16) {  // prepared rows have no sums of 16 values of k, so their values are multiplied by the offset
      const auto offset = as<U8x64>(broadcast(static_cast<std::uint32_t>(kIntegers.offset) * 0x01010101u));
      multiply_groups<kIntegers.bits, 4>([&](std::size_t, std::size_t) TESSERA_LAMBDA { return offset; }, x + k + i,
                                         job.x_stride, dot);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) dot[r][0] = broadcast(0) - dot[r][0];
    }
    add_dots<kIntegers.bits, kStep / 4>(open, i / 4, x + k + i, job.x_stride, dot);
    const auto d = load<F32x16>(open.d[i / 16]);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const float scale = value_at<float>(x + r * job.x_stride + layout.scales + 4 * block);
      acc[r][0] = fma(to_float(dot[r][0]), d * broadcast(scale), acc[r][0]);
    }
  }
}

// ---- int8: superblocks ----

template <PackedForm kForm, std::size_t kR>
TESSERA_INLINE void multiply_super(const LinearJob& job, const OpenTile& open, std::size_t row, std::size_t k,
                                   F32x16 (&acc)[kR][1]) {
  constexpr OpenIntegers kIntegers = open_integers(kForm);
  constexpr std::size_t kSub = kIntegers.sub;
  const RowLayout layout = row_layout(InputForm::int8x256, job.inputs);
  const std::byte* x = job.x + row * job.x_stride;
  const std::byte* sums = x + layout.sums + k / 16 * 2;
  I32x16 sum[kR] = {};
  for (std::size_t j = 0; j < 16; j += kSub / 16) {
    I32x16 dot[kR][1];
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      std::int32_t of_x = value_at<std::int16_t>(sums + r * job.x_stride + 2 * j);
      if constexpr (kSub == 32) of_x += value_at<std::int16_t>(sums + r * job.x_stride + 2 * j + 2);
      dot[r][0] = start<kIntegers.bits, kIntegers.offset>(of_x);
    }
    add_dots<kIntegers.bits, kSub / 4>(open, 4 * j, x + k + 16 * j, job.x_stride, dot);
    const auto scale = load<I32x16>(open.scale[j]);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) sum[r] = kept(sum[r] + dot[r][0] * scale);
  }
  const auto d = load<F32x16>(open.d[0]);
  TESSERA_UNROLL
  for (std::size_t r = 0; r < kR; ++r) {
    const F32x16 scale = broadcast(value_at<float>(x + r * job.x_stride + layout.scales + k / 256 * 4));
    acc[r][0] = fma(to_float(sum[r]), d * scale, acc[r][0]);
    if constexpr (form_layout(kForm).has_min) {
      I32x16 mins = broadcast(0);
      for (std::size_t j = 0; j < 16; ++j) {
        const std::int32_t of_x = value_at<std::int16_t>(sums + r * job.x_stride + 2 * j);
        mins = mins - load<I32x16>(open.min[j]) * broadcast(of_x);
      }
      acc[r][0] = fma(to_float(mins), load<F32x16>(open.dmin) * scale, acc[r][0]);
    }
  }
}

// Prefetches the weights that lie Ahead::bytes further on than `tile`, which is being opened. All lines of Q3_K are prefetched: its third
// bits are read with each half of its other bits, and no CPU's own prefetchers follow this order (on Zen 4 the speed was half).
template <PackedForm kForm>
TESSERA_INLINE void ask(const std::byte* tile, Ahead ahead) {
  constexpr std::size_t kBytes = form_layout(kForm).tile_bytes;
  if constexpr (kForm == PackedForm::kept_q3_k) ahead.all_lines = true;
  for (std::size_t i = 0; i < kBytes; i += kSparse) prefetch(tile + i, kSparse < kBytes - i ? kSparse : kBytes - i, ahead);
}

template <PackedForm kForm>
void int8_row(const LinearJob& job) noexcept {
  constexpr FormLayout kLayout = form_layout(kForm);
  [[maybe_unused]] const Grids points = has_grid_row(kForm) ? grids() : Grids();
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* tile = job.weights + panel * job.panel_bytes;
    F32x16 acc = broadcast(0.0f);
    for (std::size_t k = 0; k < job.inputs; k += kLayout.block_values, tile += kLayout.tile_bytes) {
#if defined(__AVX512F__)
      if constexpr (has_grid_row(kForm)) {
        ask<kForm>(tile, job.ahead);
        multiply_grid_row<kForm>(job, points, tile, k, acc);
        continue;
      }
#endif
      if constexpr (kLayout.block_values == 256) {
        multiply_super_row<kForm>(job, tile, k, acc);
      } else {
        prefetch(tile, kLayout.tile_bytes, job.ahead);
        multiply_small_row<kForm>(job, tile, k, acc);
      }
    }
    store_outputs(job, 0, panel, acc);
  }
}

// Computes a job in family int8. Scratch: sums [rows][16 outputs].
template <PackedForm kForm>
void int8_rows(const LinearJob& job) noexcept {
  if constexpr (multiplies_as_it_comes(kForm) || has_grid_row(kForm)) {
    if (job.rows == 1) return int8_row<kForm>(job);
  }
  constexpr FormLayout kLayout = form_layout(kForm);
  constexpr std::size_t kValues = kLayout.block_values;
  OpenTile open;
  const Grids points = has_grid(kForm) ? grids() : Grids();
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* tile = job.weights + panel * job.panel_bytes;
    for (std::size_t k = 0; k < job.inputs; k += kValues, tile += kLayout.tile_bytes) {
      ask<kForm>(tile, job.ahead);
      open_kept<kForm>(points, tile, open);
      by_rows<kTileRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        std::byte* sums = job.scratch + 64 * row;
        F32x16 acc[kR][1] = {};
        if (k != 0) load_sums(sums, 1, acc);
        if constexpr (kValues == 256) {
          multiply_super<kForm>(job, open, row, k, acc);
        } else {
          multiply_small<kForm>(job, open, row, k, acc);
        }
        store_sums(sums, 1, acc);
      });
    }
    store_all_outputs<1>(job, panel);
  }
}

// ---- bf16 ----

// Computes a job in family bf16. Scratch: sums [rows][16 outputs]; then a tile's weights, rounded to bf16 and stored as floats
// [k][16 outputs].
void bf16_rows(const LinearJob& job, PackedForm form) noexcept {
  const FormLayout layout = form_layout(form);
  auto* weights = reinterpret_cast<float*>(job.scratch + kAccBytes);
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* tile = job.weights + panel * job.panel_bytes;
    for (std::size_t first = 0; first < job.inputs; first += layout.block_values, tile += layout.tile_bytes) {
      decode_kept_tile(form, tile, weights);  // outside of FlushDenormals, since a scale may be a denormal
      const FlushDenormals flush;
      for (std::size_t k = 0; k < layout.block_values; ++k) {
        store(weights + 16 * k, as<F32x16>(to_bf16(load<F32x16>(weights + 16 * k))));
      }
      for (std::size_t row = 0; row < job.rows; ++row) {
        const std::byte* x = job.x + row * job.x_stride + 2 * first;
        std::byte* sum = job.scratch + 64 * row;
        F32x16 acc = first == 0 ? broadcast(0.0f) : load<F32x16>(sum);
        for (std::size_t k = 0; k < layout.block_values; k += 32) {
          F32x16 chain[2] = {};
          TESSERA_UNROLL
          for (std::size_t i = 0; i < 32; ++i) {
            const std::uint32_t bits = value_at<std::uint16_t>(x + 2 * (k + i));
            chain[i % 2] = fma(as<F32x16>(broadcast(bits << 16)), load<F32x16>(weights + 16 * (k + i)), chain[i % 2]);
          }
          acc = acc + (chain[0] + chain[1]);
        }
        store(sum, acc);
      }
    }
    store_all_outputs<1>(job, panel);
  }
}

template <PackedForm kForm>
void bf16_rows(const LinearJob& job) noexcept {
  bf16_rows(job, kForm);
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  kernels.product(Family::int8, kForm).few = {
      .run = int8_rows<kForm>, .name = "int8, blocks opened", .max_rows = kMostRows, .scratch_bytes = kAccBytes};
  kernels.product(Family::bf16, kForm).few = {.run = bf16_rows<kForm>,
                                              .name = "bf16 chains, blocks opened",
                                              .max_rows = kMostRows,
                                              .scratch_bytes = kAccBytes + kMostK * 64};
}

}  // namespace
}  // namespace linear_kept

void add_linear_kept(Kernels& kernels) noexcept {
  using namespace linear_kept;
  add<PackedForm::kept_iq4_nl>(kernels);
  add<PackedForm::kept_mxfp4>(kernels);
  add<PackedForm::kept_nvfp4>(kernels);
  add<PackedForm::kept_iq4_xs>(kernels);
  add<PackedForm::kept_q3_k>(kernels);
  add<PackedForm::kept_q2_k>(kernels);
  add<PackedForm::kept_iq3_s>(kernels);
  add<PackedForm::kept_iq3_xxs>(kernels);
  add<PackedForm::kept_iq2_s>(kernels);
  add<PackedForm::kept_iq2_xs>(kernels);
  add<PackedForm::kept_iq2_xxs>(kernels);
  add<PackedForm::kept_iq1_m>(kernels);
  add<PackedForm::kept_iq1_s>(kernels);
  add<PackedForm::kept_tq2_0>(kernels);
  add<PackedForm::kept_tq1_0>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
