// The kernels of adapters' changes on the emulator, beside plain code in the order of sums that their header states.
#include <emulator/launch.hpp>

#include <cmath>
#include <cstring>
#include <span>

#include "catch.hpp"
#include "core/float16.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/products/low_rank.hpp"
#include "paged_kv.hpp"

namespace test_cuda_low_rank_kernels {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT
using tessera::test::random_floats;

namespace {

struct Numbers {
  std::vector<std::byte> bytes;
  std::vector<float> values;  // as the kernels read them

  Numbers(LowRankNumber number, std::size_t n, std::uint32_t seed) : values(random_floats(n, seed)) {
    const std::size_t size = number == LowRankNumber::f32 ? 4 : 2;
    bytes.resize(n * size);
    for (std::size_t i = 0; i < n; ++i) {
      if (number == LowRankNumber::f32) {
        std::memcpy(bytes.data() + i * 4, &values[i], 4);
        continue;
      }
      const std::uint16_t bits = number == LowRankNumber::f16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
      values[i] = number == LowRankNumber::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      std::memcpy(bytes.data() + i * 2, &bits, 2);
    }
  }
};

float product(const float* a, const float* x, std::size_t n) {
  float lanes[32] = {};
  for (std::size_t k = 0; k < n; ++k) lanes[k % 32] = std::fma(a[k], x[k], lanes[k % 32]);
  for (std::size_t distance = 16; distance > 0; distance /= 2) {
    for (std::size_t l = 0; l < distance; ++l) lanes[l] = lanes[l] + lanes[l + distance];
  }
  return lanes[0];
}

}  // namespace

TEST_CASE("four numbers in, four out: a row's change by A, then B") {
  const float a[] = {1, 0, 0, 0,    // x0
                     0, 1, 0, 0,    // x1
                     1, 1, 1, 1,    // the sum
                     0, 2, 0, -1};  // 2 x1 - x3
  const float b[] = {0, 0, 0, 1,    // t3
                     0, 0, 1, 0,    // t2
                     0, 1, 0, 0,    // t1
                     1, 0, 0, 0};   // t0
  const float x[] = {1, 2, 3, 4};
  const std::uint32_t rows[] = {0};
  std::vector<float> t(4), out = {10, 20, 30, 40};  // of the model's own product
  emulator::launch("low_rank_down", {1, (4 + kLowRankWarps - 1) / kLowRankWarps, 1}, kLowRankThreads, 0,
                   LowRankDownArgs{std::as_bytes(std::span(a)).data(), x, rows, t.data(), 4, 4, 4, 0.5f, LowRankNumber::f32, 0, 0});
  CHECK(t == std::vector<float>{0.5f, 1, 5, 0});  // half of A x
  emulator::launch("low_rank_up", {1, 1, 1}, kLowRankThreads, 0,
                   LowRankUpArgs{std::as_bytes(std::span(b)).data(), nullptr, rows, t.data(), out.data(), 4, 0.5, 4, 4, LowRankNumber::f32, 0});
  CHECK(out == std::vector<float>{10, 25, 31, 40.5f});
}

TEST_CASE("some rows get the change of each matrix, with and without lengths") {
  const LowRankNumber number = GENERATE(LowRankNumber::f32, LowRankNumber::f16, LowRankNumber::bf16);
  const std::uint32_t matrices = 2, rank = 11, inputs = 45, outputs = 300, x_stride = matrices * inputs, out_stride = matrices * outputs;
  const bool shares_a = GENERATE(false, true), has_lengths = GENERATE(false, true);
  const Numbers a(number, (shares_a ? 1 : matrices) * rank * inputs, 1), b(number, matrices * outputs * rank, 2);
  const std::vector<float> x = random_floats(6 * x_stride, 3), before = random_floats(6 * out_stride, 4);
  std::vector<backend::LowRankValues::Length> lengths(matrices * outputs);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = {1.0 + static_cast<double>(i), 2.0, i % 7 == 0 ? -9.0 : 0.5, 0.25};
  const std::vector<std::uint32_t> rows = {1, 4, 5};
  const float scale = 0.75f;
  std::vector<float> t(matrices * rows.size() * rank), out = before;
  emulator::launch("low_rank_down", {3, (rank + kLowRankWarps - 1) / kLowRankWarps, matrices}, kLowRankThreads, 0,
                   LowRankDownArgs{a.bytes.data(), x.data(), rows.data(), t.data(), inputs, rank, x_stride, scale, number, shares_a ? 1u : 0u, 0});
  emulator::launch("low_rank_up", {3, 2, matrices}, kLowRankThreads, 0,
                   LowRankUpArgs{b.bytes.data(), has_lengths ? lengths.data() : nullptr, rows.data(), t.data(), out.data(), outputs,
                                 double{scale}, rank, out_stride, number, 0});
  std::vector<float> expected = before;
  for (std::uint32_t m = 0; m < matrices; ++m) {
    for (const std::uint32_t row : rows) {
      std::vector<float> small(rank);
      for (std::uint32_t r = 0; r < rank; ++r) {
        small[r] = scale * product(a.values.data() + ((shares_a ? 0 : m) * rank + r) * inputs, x.data() + row * x_stride + m * inputs, inputs);
      }
      for (std::uint32_t o = 0; o < outputs; ++o) {
        float sum = 0.0f;
        for (std::uint32_t r = 0; r < rank; ++r) sum = std::fma(b.values[(m * outputs + o) * rank + r], small[r], sum);
        float& at = expected[row * out_stride + m * outputs + o];
        at = at + sum;
        if (!has_lengths) continue;
        const auto& length = lengths[m * outputs + o];
        const double square = length.base + 2.0 * scale * length.mixed + scale * scale * length.change;
        at = at * (square > 0.0 ? static_cast<float>(length.wanted / std::sqrt(square)) : 0.0f);
      }
    }
  }
  CHECK(out == expected);
}

TEST_CASE("a table's change takes the row of the token, and none without a token") {
  const std::uint32_t rank = 5;
  const Numbers a(LowRankNumber::bf16, 9 * rank, 1);
  const std::vector<std::uint32_t> tokens = {8, kNoRow, 3, 0}, rows = {0, 1, 3};
  std::vector<float> t(rows.size() * rank, 9.0f);
  emulator::launch("low_rank_tokens", {3}, kLowRankThreads, 0,
                   LowRankTokensArgs{a.bytes.data(), tokens.data(), rows.data(), t.data(), rank, 0.5f, LowRankNumber::bf16, 0});
  for (std::uint32_t r = 0; r < rank; ++r) {
    CHECK(t[r] == 0.5f * a.values[8 * rank + r]);
    CHECK(t[rank + r] == 0.0f);
    CHECK(t[2 * rank + r] == 0.5f * a.values[r]);
  }
}

}  // namespace test_cuda_low_rank_kernels
