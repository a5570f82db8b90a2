// The kernels for adapters (LoRA): the two products of an adapter's change, family f32-lanes (docs/reference/numerics.md). down()
// computes t = scale * A x, up() computes out = factors * (out + B t), where t has one number for each row of A (their number is the
// rank).
// - A x: a sum has 16 lanes. Lane i is a chain of fused multiply-adds over the inputs k with k mod 16 = i. Then the lanes are added by
//   halves (8 + 8, 4 + 4, 2 + 2, 1 + 1), and the sum is multiplied by the scale.
// - B t: an output has one chain of fused multiply-adds over the rank. The result is added to `out`, and, if there are factors (DoRA),
//   multiplied by the output's factor.
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace low_rank {
namespace {

// The number of rows of x, or of t, that are multiplied at once. The registers hold the sums of these rows.
constexpr std::size_t kRows = kRegisters == 1 ? 4 : 1;
constexpr std::size_t kUpRows = kRegisters == 1 ? 4 : 1;
// Distance of the prefetch in bytes. The kernel prefetches because the CPU's own prefetcher does not help here: a change has few numbers,
// which are read only once, so the prefetcher would have to begin anew with each change.
constexpr std::size_t kAhead = 2048;
constexpr std::size_t kVectors = kLowRankPanel / kLowRankVector;

template <LowRankType kType>
TESSERA_INLINE F32x16 numbers_at(const std::byte* at) {
  if constexpr (kType == LowRankType::f32) return load<F32x16>(at);
  else if constexpr (kType == LowRankType::f16) return load_f16(at);
  else return as<F32x16>(as<U32x16>(load_i16(at)) << 16);
}
template <LowRankType kType>
constexpr std::size_t kVectorBytes = kLowRankVector * (kType == LowRankType::f32 ? 4 : 2);

TESSERA_INLINE float sum_of(F32x16 lanes) {
  lanes = lanes + swapped<8>(lanes);
  lanes = lanes + swapped<4>(lanes);
  lanes = lanes + swapped<2>(lanes);
  lanes = lanes + swapped<1>(lanes);
  return lanes.r[0][0];
}

template <LowRankType kType, std::size_t kN>
TESSERA_INLINE void down_tile(const LowRankDown& job, std::size_t block, std::size_t row) {
  constexpr std::size_t kStep = kLowRankBlock * kVectorBytes<kType>;
  F32x16 sums[kLowRankBlock][kN] = {};
  const std::byte* a = job.a + block * job.block_bytes;
  const float* x[kN];
  TESSERA_UNROLL
  for (std::size_t n = 0; n < kN; ++n) x[n] = job.x + job.rows[row + n] * job.x_stride;
  const auto add = [&](std::size_t k, auto values) TESSERA_LAMBDA {
    F32x16 of_x[kN];
    TESSERA_UNROLL
    for (std::size_t n = 0; n < kN; ++n) of_x[n] = values(x[n] + k);
    for (std::size_t line = 0; line < kStep; line += 64) __builtin_prefetch(a + kAhead + line);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kLowRankBlock; ++r) {
      const F32x16 of_a = numbers_at<kType>(a + r * kVectorBytes<kType>);
      TESSERA_UNROLL
      for (std::size_t n = 0; n < kN; ++n) sums[r][n] = fma(of_a, of_x[n], sums[r][n]);
    }
    a += kStep;
  };
  std::size_t k = 0;
  for (; k + kLowRankVector <= job.inputs; k += kLowRankVector) {
    add(k, [](const float* at) TESSERA_LAMBDA { return load<F32x16>(at); });
  }
  if (k < job.inputs) add(k, [&](const float* at) TESSERA_LAMBDA { return load_some(at, job.inputs - k); });
  const std::size_t first = block * kLowRankBlock, ranks = job.ranks - first < kLowRankBlock ? job.ranks - first : kLowRankBlock;
  TESSERA_UNROLL
  for (std::size_t n = 0; n < kN; ++n) {
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kLowRankBlock; ++r) {
      if (r < ranks) job.t[(row + n) * job.t_stride + first + r] = job.scale * sum_of(sums[r][n]);
    }
  }
}

template <LowRankType kType>
void down(const LowRankDown& job) noexcept {
  for (std::size_t block = 0; block * kLowRankBlock < job.ranks; ++block) {
    std::size_t row = 0;
    if constexpr (kRows > 1) {
      for (; row + kRows <= job.n_rows; row += kRows) down_tile<kType, kRows>(job, block, row);
    }
    for (; row < job.n_rows; ++row) down_tile<kType, 1>(job, block, row);
  }
}

template <LowRankType kType, std::size_t kN>
TESSERA_INLINE void up_tile(const LowRankUp& job, std::size_t panel, std::size_t row) {
  constexpr std::size_t kStep = kVectors * kVectorBytes<kType>;
  F32x16 sums[kN][kVectors] = {};
  const std::byte* b = job.b + panel * job.rank * kStep;
  for (std::size_t r = 0; r < job.rank; ++r, b += kStep) {
    for (std::size_t line = 0; line < kStep; line += 64) __builtin_prefetch(b + kAhead + line);
    TESSERA_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const F32x16 of_b = numbers_at<kType>(b + v * kVectorBytes<kType>);
      TESSERA_UNROLL
      for (std::size_t n = 0; n < kN; ++n) sums[n][v] = fma(broadcast(job.t[(row + n) * job.t_stride + r]), of_b, sums[n][v]);
    }
  }
  const std::size_t first = panel * kLowRankPanel;
  TESSERA_UNROLL
  for (std::size_t n = 0; n < kN; ++n) {
    float* const out = job.out + job.rows[row + n] * job.out_stride;
    TESSERA_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = first + v * kLowRankVector;
      if (at >= job.outputs) break;
      F32x16 value = load_some(out + at, job.outputs - at) + sums[n][v];
      if (job.factors != nullptr) value = value * load_some(job.factors + at, job.outputs - at);
      store_some(out + at, value, job.outputs - at);
    }
  }
}

template <LowRankType kType>
void up(const LowRankUp& job) noexcept {
  for (std::size_t panel = 0; panel * kLowRankPanel < job.outputs; ++panel) {
    std::size_t row = 0;
    if constexpr (kUpRows > 1) {
      for (; row + kUpRows <= job.n_rows; row += kUpRows) up_tile<kType, kUpRows>(job, panel, row);
    }
    for (; row < job.n_rows; ++row) up_tile<kType, 1>(job, panel, row);
  }
}

}  // namespace
}  // namespace low_rank

void add_low_rank(Kernels& kernels) noexcept {
  using namespace low_rank;
  kernels.low_rank = {.down = {down<LowRankType::f32>, down<LowRankType::f16>, down<LowRankType::bf16>},
                      .up = {up<LowRankType::f32>, up<LowRankType::f16>, up<LowRankType::bf16>}};
}

}  // namespace tessera::cpu::TESSERA_ISA
