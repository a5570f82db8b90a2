// Matrix products of family int8 for weights in blocks of 32 (Q8_0, Q4_0, for example), with rows that are rounded to 8 bits. The dot
// product over a block is an exact integer. It is added to the output by one fused multiply-add of floats; if there are minima, a second
// one adds the minimum times the sum of the activations (docs/reference/numerics.md).
#include <type_traits>

#include "cpu/kernels/blocks.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"
#include "cpu/kernels/words.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace linear_int8_32 {
namespace {

// Sizes of tiles, limited by the number of registers. kFewRows: rows of a tile of the kernel for few rows, which multiplies one panel as
// it streams from memory. kTilePanels: panels of a tile of the kernel for many rows, which unpacks the weights first.
constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : kRegisters == 2 && !kCentredBytes ? 3 : 2;
constexpr std::size_t kTilePanels = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kManyPanels = 4;  // panels of a task that unpacks
constexpr std::size_t kMostRows = 256;  // rows of a task, at most

// An unpacked block of 32 values of k: the integers q [8 groups of four values of k][16 outputs][4 k], then the scales d, f32 [16 outputs].
// If the form has minima, they follow: m, f32 [16 outputs].
template <PackedForm kForm>
struct Unpacked {
  static constexpr FormLayout kLayout = form_layout(kForm);
  static constexpr std::size_t kStride = kLayout.has_min ? 640 : 576;
  static constexpr std::size_t kRows = kRegisters == 1 || kPairs ? 3 : kFewRows;  // rows of a tile, at most
  static constexpr std::size_t kChunk = 8;        // blocks that are unpacked at once: they stay in L1
  static constexpr std::size_t kBlockBytes = 32;  // bytes of a row's block as it is multiplied

  TESSERA_INLINE U8x64 group(const std::byte* block, std::size_t g) { return load<U8x64>(block + 64 * g); }
  TESSERA_INLINE F32x16 d(const std::byte* block) { return load<F32x16>(block + 512); }
  TESSERA_INLINE F32x16 m(const std::byte* block) { return load<F32x16>(block + 576); }

  static void unpack(const std::byte* packed, std::size_t blocks, std::byte* to) noexcept {
    using From = Packed32<kForm>;
    for (std::size_t b = 0; b < blocks; ++b, packed += From::kStride, to += kStride) {
      TESSERA_UNROLL
      for (std::size_t g = 0; g < 8; ++g) store(to + 64 * g, From::group(packed, g));
      store(to + 512, From::d(packed));
      if constexpr (kLayout.has_min) store(to + 576, From::m(packed));
    }
  }
};

template <PackedForm kForm>
using Many = std::conditional_t<kWords && kForm == PackedForm::block32_8, Words, Unpacked<kForm>>;

// Pointers to the parts of prepared rows (int8x32), at one row and one block, and the strides from row to row.
struct Rows {
  const std::byte* q;
  std::size_t q_stride, q_block;  // bytes from row to row, from block to block
  const std::byte *scales, *sums;
  std::size_t stride;

  TESSERA_INLINE Rows of(const LinearJob& job, std::size_t row, std::size_t block) {
    const RowLayout layout = row_layout(InputForm::int8x32, job.inputs);
    const std::byte* x = job.x + row * job.x_stride;
    return {x + 32 * block, job.x_stride, 32, x + layout.scales + 4 * block, x + layout.sums + 4 * block, job.x_stride};
  }
  [[gnu::always_inline]] float scale(std::size_t row, std::size_t block) const {
    return value_at<float>(scales + row * stride + 4 * block);
  }
  [[gnu::always_inline]] std::int32_t sum(std::size_t row, std::size_t block) const {
    return value_at<std::int32_t>(sums + row * stride + 4 * block);
  }
};

// Adds the products for one block to dot[r][p], the dot product of row r and panel p.
template <class Weights, std::size_t kR, std::size_t kP>
TESSERA_INLINE void add_dots(const std::byte* weights, std::size_t panel_stride, const std::byte* q, std::size_t stride,
                             I32x16 (&dot)[kR][kP]) {
  if constexpr (requires { Weights::dots(weights, panel_stride, q, stride, dot); }) {
    Weights::dots(weights, panel_stride, q, stride, dot);
  } else {
    multiply_groups<Weights::kLayout.bits, 8>(
        [&](std::size_t p, std::size_t g) TESSERA_LAMBDA { return Weights::group(weights + p * panel_stride, g); }, q,
        stride, dot);
  }
}

// Multiplies `blocks` blocks of the rows r by the same blocks of the panels p, and adds the products to acc[r][p]. Before each block it calls
// step(weights), which prefetches.
template <class Weights, std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_stride, const Rows& x, std::size_t blocks,
                             auto step, F32x16 (&acc)[kR][kP]) {
  constexpr FormLayout kLayout = Weights::kLayout;
  for (std::size_t b = 0; b < blocks; ++b, weights += Weights::kStride) {
    step(weights);
    I32x16 dot[kR][kP];
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) dot[r][p] = start<kLayout.bits, kLayout.offset>(x.sum(r, b));
    }
    add_dots<Weights>(weights, panel_stride, x.q + x.q_block * b, x.q_stride, dot);
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) {
      const F32x16 d = Weights::d(weights + p * panel_stride);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        acc[r][p] = fma(to_float(dot[r][p]), d * broadcast(x.scale(r, b)), acc[r][p]);
      }
      if constexpr (kLayout.has_min) {
        const F32x16 m = Weights::m(weights + p * panel_stride);
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          acc[r][p] = fma(broadcast(static_cast<float>(x.sum(r, b))), m * broadcast(x.scale(r, b)), acc[r][p]);
        }
      }
    }
  }
}

// Multiplies panels one after another, as they stream from memory.
template <PackedForm kForm>
void few_rows(const LinearJob& job) noexcept {
  constexpr std::size_t kBlock = Packed32<kForm>::kStride;
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const std::byte* weights = job.weights + panel * job.panel_bytes;
    const auto tile = [&]<std::size_t kR>(Count<kR>, std::size_t row, auto& ask) TESSERA_LAMBDA {
      F32x16 acc[kR][1] = {};
      const auto step = [&](const std::byte* at) TESSERA_LAMBDA { ask.step(at, 0, kBlock); };
      multiply<Packed32<kForm>>(weights, 0, Rows::of(job, row, 0), job.inputs / 32, step, acc);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) store_outputs(job, row + r, panel, acc[r][0]);
    };
    by_streaming_rows<kFewRows, asking_rows(kBlock), 1>(job, panel, job.inputs / 32, tile);
  }
}

constexpr std::size_t kAccBytes = kMostRows * kManyPanels * 64;

// Multiplies kP panels by all rows: unpacks kChunk blocks of each panel to scratch, multiplies them by all rows, and goes on to the next
// blocks. Scratch, in this order: sums [rows][panels][16 outputs]; the unpacked blocks; if the unpacked weights are 16-bit words (Words),
// the rows' integers for these blocks as words too.
template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  using Weights = Many<kForm>;
  constexpr std::size_t kChunk = Weights::kChunk, kPanelBytes = kChunk * Weights::kStride;
  constexpr std::size_t kRowBytes = kChunk * Weights::kBlockBytes;
  std::byte* unpacked = job.scratch + kAccBytes;
  std::byte* words = unpacked + kManyPanels * kPanelBytes;
  const std::size_t blocks = job.inputs / 32;
  for (std::size_t b = 0; b < blocks; b += kChunk) {
    const std::size_t n = blocks - b < kChunk ? blocks - b : kChunk;
    for (std::size_t p = 0; p < kP; ++p) {
      const std::byte* packed = job.weights + (panel + p) * job.panel_bytes + b * Packed32<kForm>::kStride;
      Weights::unpack(packed, n, unpacked + p * kPanelBytes);
    }
    if constexpr (kRowBytes != kChunk * 32) {
      for (std::size_t row = 0; row < job.rows; ++row) Weights::widen(Rows::of(job, row, b).q, n, words + row * kRowBytes);
    }
    constexpr std::size_t kTiles = (kP + kTilePanels - 1) / kTilePanels, kBlock = Packed32<kForm>::kStride;
    Upcoming upcoming(job, panel, kP, (b + n) * kBlock, kChunk * kBlock, job.rows * kTiles);
    by_rows<Weights::kRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      Rows x = Rows::of(job, row, b);
      if constexpr (kRowBytes != kChunk * 32) {
        x.q = words + row * kRowBytes;
        x.q_stride = kRowBytes;
        x.q_block = Weights::kBlockBytes;
      }
      by_panels<kTilePanels>(kP, [&]<std::size_t kT>(Count<kT>, std::size_t p) TESSERA_LAMBDA {
        upcoming.step(kR);
        std::byte* sums = job.scratch + (row * kP + p) * 64;
        F32x16 acc[kR][kT] = {};
        if (b != 0) load_sums(sums, kP, acc);
        multiply<Weights>(unpacked + p * kPanelBytes, kPanelBytes, x, n, [](const std::byte*) TESSERA_LAMBDA {}, acc);
        store_sums(sums, kP, acc);
      });
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

// Returns the number of rows from which on unpacking the weights is faster, as measured (docs/explanation/kernels.md, "Unpacking or streaming").
template <PackedForm kForm>
std::size_t many_from(bool two_wide_products) noexcept {
  constexpr unsigned kBits = form_layout(kForm).bits;
  constexpr bool kHasMin = form_layout(kForm).has_min;
  if (kRegisters == 1 && !kPairs && two_wide_products) return kHasMin && kBits == 4 ? 33 : kHasMin || kBits == 8 ? 25 : 17;
  if (kRegisters == 1) return 17;
  if (kRegisters == 2) return kBits == 5 ? 3 : 9;
  return kBits == 8 ? 9 : 3;
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  constexpr std::size_t kWordBytes = Many<kForm>::kBlockBytes > 32 ? kMostRows * Many<kForm>::kBlockBytes : 0;
  constexpr std::size_t kScratch = kAccBytes + Many<kForm>::kChunk * (kManyPanels * Many<kForm>::kStride + kWordBytes);
  LinearPair& pair = kernels.product(Family::int8, kForm);
  pair.few = {.run = few_rows<kForm>, .name = "int8 blocks of 32, streamed", .max_rows = 32};
  pair.many = {.run = many_rows<kForm>, .name = "int8 blocks of 32, unpacked", .max_rows = kMostRows,
               .panels = kManyPanels, .scratch_bytes = kScratch};
  pair.many_from = many_from<kForm>(kernels.two_wide_products);
}

}  // namespace
}  // namespace linear_int8_32

void add_linear_int8_32(Kernels& kernels) noexcept {
  using namespace linear_int8_32;
  add<PackedForm::block32_4>(kernels);
  add<PackedForm::block32_4_min>(kernels);
  add<PackedForm::block32_5>(kernels);
  add<PackedForm::block32_5_min>(kernels);
  add<PackedForm::block32_8>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
