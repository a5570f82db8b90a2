// Matrix products of family int8 for weights in superblocks of 256 (Q4_K, Q5_K, Q6_K), with rows that are rounded to 8 bits. The scales
// and minima of sub-blocks are integers, so all sums within a superblock are integers. A superblock's sum is added to the output by one
// fused multiply-add of floats; if there are minima, a second one adds their sum (docs/reference/numerics.md).
#include "cpu/kernels/blocks.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace linear_int8_256 {
namespace {

// Sizes of tiles, limited by the number of registers. kFewRows: rows of a tile of the kernel for few rows, which multiplies one panel as
// it streams from memory. kManyPanels, kManyRows: panels and rows of a tile of the kernel for many rows, which unpacks the weights first.
constexpr std::size_t kFewRows = kRegisters == 1 ? 6 : 2;
constexpr std::size_t kManyPanels = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kManyRows = (kNames - 1 - kManyPanels * kRegisters) / (2 * kManyPanels * kRegisters);  // two sums each
constexpr std::size_t kMostRows = 256;  // rows of a task, at most
constexpr std::size_t kAhead = kManyPanels == 1 ? 8 : 1;  // distance of the prefetch, in superblocks

// The head of an unpacked superblock: its scales and minima, as vectors load them. It follows the integers. Offsets in bytes ("outputs"
// are the 16 outputs of the panel):
//   0           [8 or 16 sub-blocks][outputs] i32: the scales. With kPairs each scale is a word (16 bits), stored twice in its lane
//   kMinsAt     [minima 0 to 3, minima 4 to 7][outputs][4] bytes
//   kDAt        [outputs] f32; kDminAt: [outputs] f32
//   kTwosAt     with kPairs and 6 bits only: [8 pairs of sub-blocks][outputs][2] words, the scales of both sub-blocks
constexpr std::size_t kMinsAt = 1024, kDAt = 1152, kDminAt = 1216, kTwosAt = 1280;
constexpr std::size_t kHeadBytes = kTwosAt + (kPairs ? 512 : 0);

template <PackedForm kForm>
TESSERA_INLINE void unpack_head(const std::byte* block, std::byte* to) {
  using From = Packed256<kForm>;
  TESSERA_UNROLL
  for (std::size_t j = 0; j < 256 / From::kSub; j += 2) {
    const I32x16 first = From::scale(block, j), second = From::scale(block, j + 1);
    if constexpr (kPairs) {
      const auto words = [](I32x16 low, I32x16 high) TESSERA_LAMBDA {
        return (as<U32x16>(low) & broadcast(0xffffu)) | (as<U32x16>(high) << 16);
      };
      store(to + 64 * j, words(first, first));
      store(to + 64 * j + 64, words(second, second));
      if constexpr (From::kLayout.bits == 6) store(to + kTwosAt + 32 * j, words(first, second));
    } else {
      store(to + 64 * j, first);
      store(to + 64 * j + 64, second);
    }
  }
  store(to + kDAt, From::d(block));
  if constexpr (From::kLayout.has_min) {
    store(to + kMinsAt, From::four_mins(block, 0));
    store(to + kMinsAt + 64, From::four_mins(block, 1));
    store(to + kDminAt, From::dmin(block));
  }
}

// An unpacked superblock: q [64 groups of four values of k][16 outputs][4 k], then the head (above).
template <PackedForm kForm>
struct Unpacked {
  static constexpr FormLayout kLayout = form_layout(kForm);
  static constexpr std::size_t kSub = Packed256<kForm>::kSub;
  static constexpr std::size_t kHeadAt = 4096, kStride = kHeadAt + kHeadBytes;

  TESSERA_INLINE U8x64 group(const std::byte* block, std::size_t p, std::size_t v) {
    return load<U8x64>(block + 64 * (16 * p + v));
  }

  static void unpack(const std::byte* packed, std::byte* to) noexcept {
    for (std::size_t p = 0; p < 4; ++p) {
      TESSERA_UNROLL
      for (std::size_t v = 0; v < 16; ++v) store(to + 64 * (16 * p + v), Packed256<kForm>::group(packed, p, v));
    }
    unpack_head<kForm>(packed, to + kHeadAt);
  }
};

// Pointers to the parts of prepared rows (int8x256), at one row and one superblock. Later rows lie `stride` bytes apart.
struct Rows {
  const std::byte *q, *scales, *sums, *parts;
  std::size_t stride;

  TESSERA_INLINE Rows of(const LinearJob& job, std::size_t row, std::size_t block) {
    const RowLayout layout = row_layout(InputForm::int8x256, job.inputs);
    const std::byte* x = job.x + row * job.x_stride;
    return {x + 256 * block, x + layout.scales + 4 * block, x + layout.sums + 32 * block, x + layout.parts + 16 * block,
            job.x_stride};
  }
};

// Sets the values from which the sums start, for weights of 6 bits with kPairs. The sum of scale * (w - offset) * x is needed, where w is
// the stored integer, but with kPairs the products are w * x, without the offset. So the sum starts from -offset * (the sum over sub-blocks
// of scale * (sum of x)).
template <int kOffset, std::size_t kR, std::size_t kP>
TESSERA_INLINE void start_pairs(const std::byte* heads, std::size_t head_stride, const Rows& x, I32x16 (&sum)[kR][kP]) {
  static_assert(kOffset == 32);
  I32x16 of_x[kR][kP] = {};
  TESSERA_UNROLL
  for (std::size_t j = 0; j < 8; ++j) {
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) {
      const auto scales = load<I32x16>(heads + p * head_stride + kTwosAt + 64 * j);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        of_x[r][p] = kept(dot2(of_x[r][p], scales, broadcast4(x.sums + r * x.stride + 4 * j)));
      }
    }
  }
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kR * kP; ++i) sum[i / kP][i % kP] = broadcast(0) - (of_x[i / kP][i % kP] << 5);
}

// Adds to sum[r][p], for each sub-block, its scale times the sum of (q - offset) * x. Before each sub-block calls step(sub-block), which
// prefetches.
template <class Weights, std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply_integers(const std::byte* weights, std::size_t panel_stride, const std::byte* heads,
                                      std::size_t head_stride, const Rows& x, auto step,
                                      I32x16 (&sum)[kR][kP]) {
  constexpr std::size_t kGroups = Weights::kSub / 4, kSubs = 16 / kGroups;  // groups of a sub-block; sub-blocks in 64 values of k
  constexpr unsigned kBits = Weights::kLayout.bits;
  if constexpr (kPairs && kBits == 6) start_pairs<Weights::kLayout.offset>(heads, head_stride, x, sum);
  for (std::size_t p64 = 0; p64 < 4; ++p64) {
    TESSERA_UNROLL
    for (std::size_t s = 0; s < kSubs; ++s) {
      const std::size_t sub = p64 * kSubs + s;
      step(sub);
      const std::byte* q = x.q + 64 * p64;
      const auto scale = [&](std::size_t p) TESSERA_LAMBDA {
        return load<I32x16>(heads + p * head_stride + 64 * sub);
      };
      if constexpr (kPairs) {
        multiply_pairs<kBits, kGroups>(
            s * kGroups,
            [&](std::size_t p, std::size_t v) TESSERA_LAMBDA {
              return Weights::group(weights + p * panel_stride, p64, v);
            },
            scale, q, x.stride, sum);
      } else {
        I32x16 dot[kR][kP];
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          std::int32_t of_x = 0;
          if constexpr (kBits == 6) of_x = value_at<std::int16_t>(x.sums + r * x.stride + 2 * sub);
          TESSERA_UNROLL
          for (std::size_t p = 0; p < kP; ++p) dot[r][p] = start<kBits, Weights::kLayout.offset>(of_x);
        }
        // Index v counts groups from the beginning of the 64 values of k, here and above. With an index that counts from the sub-block's
        // beginning, g++ computes more addresses than fit the registers.
        TESSERA_UNROLL
        for (std::size_t v = s * kGroups; v < (s + 1) * kGroups; ++v) {
          multiply_group<kBits>(
              [&](std::size_t p) TESSERA_LAMBDA { return Weights::group(weights + p * panel_stride, p64, v); },
              q + 4 * v, x.stride, dot);
        }
        TESSERA_UNROLL
        for (std::size_t p = 0; p < kP; ++p) {
          const I32x16 by = scale(p);
          TESSERA_UNROLL
          for (std::size_t r = 0; r < kR; ++r) sum[r][p] = sum[r][p] + dot[r][p] * by;
        }
      }
    }
  }
}

// Returns, for one row and one superblock of a panel, the sum over sub-blocks of the minimum times the sum of x.
TESSERA_INLINE I32x16 multiply_mins(const std::byte* head, const std::byte* parts) {
  const auto first = load<U8x64>(head + kMinsAt), second = load<U8x64>(head + kMinsAt + 64);
  const auto dot = [&](const std::byte* at) TESSERA_LAMBDA {
    if constexpr (kPairs) {
      const I32x16 words = add_words(pair_products(first, broadcast4(at)), pair_products(second, broadcast4(at + 4)));
      return dot2(broadcast(0), words, broadcast(0x00010001));
    } else {
      return dot4_at<6>(dot4_at<6>(broadcast(0), first, at), second, at + 4);
    }
  };
  return dot(parts) + (dot(parts + 8) << 7);
}

// Adds the products for one superblock to acc[r][p], the sum of row r and panel p.
template <class Weights, std::size_t kR, std::size_t kP>
TESSERA_INLINE void multiply(const std::byte* weights, std::size_t panel_stride, const std::byte* heads,
                             std::size_t head_stride, const Rows& x, auto step, F32x16 (&acc)[kR][kP]) {
  I32x16 sum[kR][kP] = {};
  multiply_integers<Weights>(weights, panel_stride, heads, head_stride, x, step, sum);
  TESSERA_UNROLL
  for (std::size_t p = 0; p < kP; ++p) {
    const std::byte* head = heads + p * head_stride;
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 scale = broadcast(value_at<float>(x.scales + r * x.stride));
      acc[r][p] = fma(to_float(sum[r][p]), load<F32x16>(head + kDAt) * scale, acc[r][p]);
      if constexpr (Weights::kLayout.has_min) {
        const I32x16 mins = broadcast(0) - multiply_mins(head, x.parts + r * x.stride);
        acc[r][p] = fma(to_float(mins), load<F32x16>(head + kDminAt) * scale, acc[r][p]);
      }
    }
  }
}

// Multiplies panels one after another, as they stream from memory.
template <PackedForm kForm>
void few_rows(const LinearJob& job) noexcept {
  using Weights = Packed256<kForm>;
  alignas(64) std::byte head[kHeadBytes];
  for (std::size_t panel = 0; panel < job.panels; ++panel) {
    const auto tile = [&]<std::size_t kR>(Count<kR>, std::size_t row, auto& ask) TESSERA_LAMBDA {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      const auto step = [&](std::size_t sub) TESSERA_LAMBDA {
        constexpr std::size_t kPart = Weights::kStride * Weights::kSub / 256;  // bytes a step; more prefetches at once would stall the product
        ask.step(weights + sub * kPart, 0, kPart);
      };
      F32x16 acc[kR][1] = {};
      for (std::size_t b = 0; b < job.inputs / 256; ++b, weights += Weights::kStride) {
        unpack_head<kForm>(weights, head);
        multiply<Weights>(weights, 0, head, 0, Rows::of(job, row, b), step, acc);
      }
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) store_outputs(job, row + r, panel, acc[r][0]);
    };
    constexpr std::size_t kAskingRows = asking_rows(Weights::kStride / 8);
    by_streaming_rows<kFewRows, kAskingRows, 1>(job, panel, job.inputs / Weights::kSub, tile);
  }
}

constexpr std::size_t kAccBytes = kMostRows * kManyPanels * 64;

// Multiplies kP panels by all rows, one superblock after another: unpacks the superblock to scratch and multiplies it by all rows.
// Between two superblocks the sums are kept in scratch.
template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  using Weights = Unpacked<kForm>;
  std::byte* unpacked = job.scratch + kAccBytes;
  const std::size_t blocks = job.inputs / 256, ahead = blocks < kAhead ? blocks : kAhead;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t p = 0; p < kP; ++p) {
      const std::byte* packed = job.weights + (panel + p) * job.panel_bytes + b * Packed256<kForm>::kStride;
      Weights::unpack(packed, unpacked + p * Weights::kStride);
    }
    Upcoming upcoming(job, panel, kP, (b + ahead) * Packed256<kForm>::kStride, Packed256<kForm>::kStride, job.rows);
    by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
      upcoming.step(kR);
      std::byte* sums = job.scratch + row * kP * 64;
      F32x16 acc[kR][kP] = {};
      if (b != 0) load_sums(sums, kP, acc);
      multiply<Weights>(unpacked, Weights::kStride, unpacked + Weights::kHeadAt, Weights::kStride,
                        Rows::of(job, row, b), [](std::size_t) TESSERA_LAMBDA {}, acc);
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

// Returns the number of rows from which on unpacking the weights is faster, as measured (docs/explanation/kernels.md, "Unpacking or streaming").
template <PackedForm kForm>
std::size_t many_from(bool two_wide_products) noexcept {
  constexpr unsigned kBits = form_layout(kForm).bits;
  if (kRegisters == 1) return kPairs ? 9 : two_wide_products && kBits == 4 ? 33 : 17;
  return kRegisters == 2 && kBits == 4 ? 9 : 3;
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  LinearPair& pair = kernels.product(Family::int8, kForm);
  pair.few = {.run = few_rows<kForm>, .name = "int8 superblocks, streamed", .max_rows = 32};
  pair.many = {.run = many_rows<kForm>, .name = "int8 superblocks, unpacked", .max_rows = kMostRows,
               .panels = kManyPanels, .scratch_bytes = kAccBytes + kManyPanels * Unpacked<kForm>::kStride};
  pair.many_from = many_from<kForm>(kernels.two_wide_products);
}

}  // namespace
}  // namespace linear_int8_256

void add_linear_int8_256(Kernels& kernels) noexcept {
  using namespace linear_int8_256;
  add<PackedForm::block256_4>(kernels);
  add<PackedForm::block256_5>(kernels);
  add<PackedForm::block256_6>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
