// Matrix products of family f32, for weights in F32, F16 and BF16. An output is one chain of fused multiply-adds over k
// (docs/reference/numerics.md): each addition needs the sum before it. Weights of 16 bits are converted to floats before they are
// multiplied.
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/products/upcoming.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace linear_f32 {
namespace {

constexpr std::size_t kFewRows = kRegisters == 1 ? 8 : kRegisters == 2 ? 4 : 2;
constexpr std::size_t kManyRows = kRegisters < 4 ? 6 : 4;
constexpr std::size_t kTileVectors = kRegisters == 1 ? 4 : 1;  // vectors of a tile of many rows, limited by the registers
constexpr std::size_t kMostRows = 256;  // the most rows of a task. many_rows() converts 16-bit weights once a task
// The number of values of k that many_rows() multiplies with all rows before it goes on to the next values of k. The weights of kChunk
// values of k stay in L2. With a smaller chunk, the sums would be stored to scratch and loaded again more often.
constexpr std::size_t kChunk = kRegisters == 1 ? 512 : 256;

// Sizes for a packed form. kVectors: vectors of 16 outputs in a panel. kPairBytes: bytes of a panel's weights for two values of k. The
// other members are sizes of tiles.
//
// kPairedRows says when two panels of BF16 are multiplied side by side. The reason: the additions to one vector of sums are a chain that
// takes four cycles for each k. With F32 weights this is no slower than memory. Weights of 16 bits arrive twice as fast, so one chain would
// be slower than memory; two chains side by side are faster. (An f16 panel has two vectors already.)
template <PackedForm kForm>
struct Streamed {
  static constexpr bool kHalves = kForm != PackedForm::f32;  // true: weights of 16 bits
  static constexpr std::size_t kVectors = panel_outputs(kForm) / kPanel;
  static constexpr std::size_t kPairBytes = (kHalves ? 64 : 128) * kVectors;
  // The most rows of a task for few_rows(). few_rows() reads weights directly from the panel; if they have 16 bits, it converts them in
  // registers, again for each tile of rows. many_rows() converts the weights to floats once, in scratch. If a register has 16 floats
  // (kRegisters == 1), few_rows() computes all tasks with 16-bit weights.
  static constexpr std::size_t kMostStreamed = kHalves && kRegisters == 1 ? kMostRows : 32;
  // Tasks of 2 to kPairedRows rows multiply two panels side by side, of one vector each. 1: no task does.
  static constexpr std::size_t kPairedRows =
      kForm != PackedForm::bf16 || kRegisters > 2 ? 1 : kRegisters == 1 ? kMostStreamed : 2;
  static constexpr std::size_t kRows = kVectors > 1 && kRegisters > 1 ? kFewRows / kVectors : kFewRows;
  static constexpr std::size_t kAskingRows = kHalves ? 3 : 5;  // from this many rows on, the products take longer than reading the weights
  static constexpr std::size_t kManyPanels = kHalves ? 1 : kTileVectors;  // with 16-bit weights, tiles have one vector
  static constexpr std::size_t kManyVectors = kManyPanels * kVectors;

  // Returns the weights of a panel's vector v for two values of k.
  TESSERA_INLINE F32x16Pair pair(const std::byte* at, std::size_t v) {
    if constexpr (kForm == PackedForm::f16) {
      return {load_f16(at + 32 * v), load_f16(at + 32 * v + 64)};
    } else if constexpr (kForm == PackedForm::bf16) {
      const auto pairs = kept(load<U32x16>(at));
      return {kept(even_of(pairs)), kept(odd_of(pairs))};  // without kept() g++ runs out of registers in avx2
    } else {
      return {load<F32x16>(at), load<F32x16>(at + 64)};
    }
  }
  // Returns the weights of a panel's vector v for the last k, if the number of inputs is odd. In F32 only one vector is loaded, because
  // the weights end there. (Panels of 16-bit weights are padded, so a pair can be loaded.)
  TESSERA_INLINE F32x16 one(const std::byte* at, std::size_t v) {
    if constexpr (kHalves) return pair(at, v).even;
    else return load<F32x16>(at);
  }
};

// Multiplies kR rows by kV vectors of weights, and adds the products to acc[row][vector]. Reads the weights from the panels in order. Calls
// step(pointer to the weights) before each kPairs pairs of k; step() prefetches later weights.
template <PackedForm kForm, std::size_t kPairs, std::size_t kR, std::size_t kV>
TESSERA_INLINE void stream(const std::byte* weights, std::size_t panel_bytes, const std::byte* x, std::size_t x_stride,
                           std::size_t inputs, auto step, F32x16 (&acc)[kR][kV]) {
  using From = Streamed<kForm>;
  const auto panel = [&](const std::byte* at, std::size_t v) TESSERA_LAMBDA {
    return at + v / From::kVectors * panel_bytes;
  };
  constexpr std::size_t kBeside = kRegisters == 1 ? kV : 1;  // vectors of weights that the registers hold beside the sums
  const auto add = [&](std::size_t first, const std::byte* values, const F32x16(&w)[kBeside]) TESSERA_LAMBDA {
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 value = broadcast(value_at<float>(values + r * x_stride));
      TESSERA_UNROLL
      for (std::size_t v = 0; v < kBeside; ++v) acc[r][first + v] = fma(value, w[v], acc[r][first + v]);
    }
  };
  const auto two = [&](const std::byte* at, const std::byte* values) TESSERA_LAMBDA {
    TESSERA_UNROLL
    for (std::size_t first = 0; first < kV; first += kBeside) {
      F32x16 even[kBeside], odd[kBeside];
      TESSERA_UNROLL
      for (std::size_t v = 0; v < kBeside; ++v) {
        const F32x16Pair w = From::pair(panel(at, first + v), (first + v) % From::kVectors);
        even[v] = w.even;
        odd[v] = w.odd;
      }
      add(first, values, even);
      add(first, values + 4, odd);
    }
  };
  std::size_t k = 0;
  for (; k + 2 * kPairs <= inputs; k += 2 * kPairs, weights += kPairs * From::kPairBytes, x += 8 * kPairs) {
    step(weights);
    TESSERA_UNROLL
    for (std::size_t i = 0; i < kPairs; ++i) two(weights + i * From::kPairBytes, x + 8 * i);
  }
  for (; k + 2 <= inputs; k += 2, weights += From::kPairBytes, x += 8) two(weights, x);
  if (k == inputs) return;
  TESSERA_UNROLL
  for (std::size_t first = 0; first < kV; first += kBeside) {
    F32x16 last[kBeside];
    TESSERA_UNROLL
    for (std::size_t v = 0; v < kBeside; ++v) {
      last[v] = From::one(panel(weights, first + v), (first + v) % From::kVectors);
    }
    add(first, x, last);
  }
}

// The kernel for few rows: multiplies panels one after another, as they stream from memory. Exception: if the job has 2 to kPairedRows
// rows, two panels are multiplied side by side, so that a row has two chains of additions at a time. With one row this would lose more
// time than it gains, because a core reads one stream of weights much faster than two.
template <PackedForm kForm>
void few_rows(const LinearJob& job) noexcept {
  using From = Streamed<kForm>;
  const auto multiply = [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    constexpr std::size_t kV = kP * From::kVectors;
    const std::byte* weights = job.weights + panel * job.panel_bytes;
    const auto tile = [&]<std::size_t kR, class Ask>(Count<kR>, std::size_t row, Ask& ask) TESSERA_LAMBDA {
      constexpr std::size_t kPairs = Ask::kLeastStep > From::kPairBytes ? Ask::kLeastStep / From::kPairBytes : 1;
      const auto step = [&](const std::byte* at) TESSERA_LAMBDA {
        ask.step(at, job.panel_bytes, kPairs * From::kPairBytes);
      };
      F32x16 acc[kR][kV] = {};
      stream<kForm, kPairs>(weights, job.panel_bytes, job.x + row * job.x_stride, job.x_stride, job.inputs, step, acc);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        TESSERA_UNROLL
        for (std::size_t v = 0; v < kV; ++v) store_outputs(job, row + r, panel * From::kVectors + v, acc[r][v]);
      }
    };
    constexpr std::size_t kRows = kP == 2 && From::kPairedRows < From::kRows ? From::kPairedRows : From::kRows;
    by_streaming_rows<kRows, From::kAskingRows, kP, true>(job, panel, (job.inputs + 1) / 2, tile);
  };
  if constexpr (From::kPairedRows > 1) {
    if (job.rows > 1 && job.rows <= From::kPairedRows) return by_panels<2>(job.panels, multiply);
  }
  by_panels<1>(job.panels, multiply);
}

// Adds the products for `depth` values of k to the sums of kR rows and kP vectors in scratch. If `first`, starts the sums from 0.
// weights: floats [vector][k][16 outputs], `stride` bytes from vector to vector. sums: [row][kV vectors][16 outputs]. This
// function is not inlined: where g++ inlined it (AVX-512), one of the 24 sums stayed in memory instead of in a register. Each addition to
// this sum then waited for a store and a load, and on Zen 5 the loop took 1.2 times as long.
template <std::size_t kR, std::size_t kP, std::size_t kV>
[[gnu::noinline]] void multiply(const std::byte* weights, std::size_t stride, const std::byte* x, std::size_t x_stride,
                                std::size_t depth, std::byte* sums, bool first) noexcept {
  F32x16 acc[kR][kP] = {};
  if (!first) load_sums(sums, kV, acc);
  for (std::size_t k = 0; k < depth; ++k, weights += 64, x += 4) {
    F32x16 w[kP];
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) w[p] = kept(load<F32x16>(weights + p * stride));
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      const F32x16 value = broadcast(value_at<float>(x + r * x_stride));
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) acc[r][p] = fma(value, w[p], acc[r][p]);
    }
  }
  store_sums(sums, kV, acc);
}

template <PackedForm kForm>
constexpr std::size_t kAccBytes = kMostRows * Streamed<kForm>::kManyVectors * 64;
constexpr std::size_t kChunkBytes = kChunk * 64;  // bytes of a chunk of 16 outputs, as floats

// Multiplies kP panels by all rows, kChunk values of k at a time. Between two chunks the sums are kept in scratch. 16-bit weights are
// converted to floats in scratch, once for all rows.
template <PackedForm kForm, std::size_t kP>
void some_panels(const LinearJob& job, std::size_t panel) noexcept {
  using From = Streamed<kForm>;
  constexpr std::size_t kV = kP * From::kVectors, kBeside = kV < kTileVectors ? kV : kTileVectors, kTiles = kV / kBeside;
  constexpr bool kAsks = kTileVectors == 1;  // four panels of F32 arrive as fast without prefetching
  for (std::size_t k = 0; k < job.inputs; k += kChunk) {
    const std::size_t depth = job.inputs - k < kChunk ? job.inputs - k : kChunk;
    const std::size_t at = k / 2 * From::kPairBytes, chunk = kChunk / 2 * From::kPairBytes;
    const std::byte* weights = job.weights + panel * job.panel_bytes + at;
    std::size_t stride = job.panel_bytes;
    Upcoming upcoming(job, panel, kP, k + kChunk < job.inputs ? at + chunk : job.panel_bytes, chunk, job.rows * kTiles);
    if constexpr (From::kHalves) {
      std::byte* floats = job.scratch + kAccBytes<kForm>;
      for (std::size_t p = 0; p < kP; ++p) {
        const std::byte* from = weights + p * job.panel_bytes;
        std::byte* to = floats + p * From::kVectors * kChunkBytes;
        for (std::size_t i = 0; i < depth; i += 2, from += From::kPairBytes, to += 128) {
          TESSERA_UNROLL
          for (std::size_t v = 0; v < From::kVectors; ++v) {
            const F32x16Pair pair = From::pair(from, v);
            store(to + v * kChunkBytes, pair.even);
            store(to + v * kChunkBytes + 64, pair.odd);
          }
        }
      }
      weights = floats;
      stride = kChunkBytes;
    }
    by_panels<kBeside>(kV, [&]<std::size_t kT>(Count<kT>, std::size_t v) TESSERA_LAMBDA {
      by_rows<kManyRows>(job.rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        if constexpr (kAsks) upcoming.step(kR);
        std::byte* sums = job.scratch + (row * kV + v) * 64;
        const std::byte* x = job.x + row * job.x_stride + k * 4;
        multiply<kR, kT, kV>(weights + v * stride, stride, x, job.x_stride, depth, sums, k == 0);
      });
    });
  }
  store_all_outputs<kV>(job, panel * From::kVectors);
}

template <PackedForm kForm>
void many_rows(const LinearJob& job) noexcept {
  by_panels<Streamed<kForm>::kManyPanels>(job.panels, [&]<std::size_t kP>(Count<kP>, std::size_t panel) TESSERA_LAMBDA {
    some_panels<kForm, kP>(job, panel);
  });
}

// Returns the number of rows from which on many_rows() is faster than few_rows() (measured). With 16-bit weights it is the number from
// which on it is faster to convert the weights once, to floats in scratch, than again in each tile of rows.
template <PackedForm kForm>
constexpr std::size_t many_from() noexcept {
  if (Streamed<kForm>::kHalves && kRegisters > 2) return 5;
  return kForm == PackedForm::bf16 && kRegisters == 2 ? 17 : Streamed<kForm>::kMostStreamed + 1;
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  using From = Streamed<kForm>;
  LinearPair& pair = kernels.product(Family::f32, kForm);
  pair.few = {.run = few_rows<kForm>, .name = "f32, streamed", .max_rows = From::kMostStreamed,
              .panels = From::kPairedRows > 1 ? 2 : 1};
  if constexpr (From::kMostStreamed < kMostRows) {
    pair.many = {.run = many_rows<kForm>, .name = "f32, tiles", .max_rows = kMostRows, .panels = From::kManyPanels,
                 .scratch_bytes = kAccBytes<kForm> + (From::kHalves ? From::kManyVectors * kChunkBytes : 0)};
    pair.many_from = many_from<kForm>();
  }
}

}  // namespace
}  // namespace linear_f32

void add_linear_f32(Kernels& kernels) noexcept {
  using namespace linear_f32;
  add<PackedForm::f32>(kernels);
  add<PackedForm::f16>(kernels);
  add<PackedForm::bf16>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
