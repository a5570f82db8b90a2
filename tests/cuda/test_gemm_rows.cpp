// Activations as 16-bit numbers before a product, and its result after it.
#include <emulator/launch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "catch.hpp"
#include "core/float16.hpp"
#include "cuda/kernels/products/gemm_rows.hpp"

namespace test_gemm_rows {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Narrowed {
  std::vector<std::uint16_t> out;
  std::vector<float> scales;
};

Narrowed narrow(const char* kernel, const std::vector<float>& x, std::uint32_t columns) {
  const auto rows = static_cast<unsigned>(x.size() / columns);
  Narrowed result{std::vector<std::uint16_t>(x.size(), 0xffff), std::vector<float>(rows, kNaN)};
  emulator::launch(kernel, {rows}, kGemmRowThreads, 0,
                   NarrowRowsArgs{x.data(), result.out.data(), result.scales.data(), columns, columns, columns});
  return result;
}

}  // namespace

TEST_CASE("four numbers in, four out: a row as f16, and a product's row at its end") {
  const Narrowed row = narrow("rows_to_half", {1, 2, -3, 4}, 4);
  std::vector<float> back;
  for (const std::uint16_t half : row.out) back.push_back(f16_to_f32(half) * row.scales[0]);
  CHECK(back == std::vector<float>{1, 2, -3, 4});

  const float y[] = {1, 2, 3, 4}, scale[] = {2}, bias[] = {10, 20, 30, 40};
  std::vector<float> out{100, 100, 100, 100};
  emulator::launch("finish_rows", {1, 1}, kGemmRowThreads, 0, FinishRowsArgs{y, scale, bias, out.data(), 4, 4, 4, FinishStore::add});
  CHECK(out == std::vector<float>{112, 124, 136, 148});  // what was there, 2 y, and the bias
}

TEST_CASE("rows as f16: the largest comes near the top of the range, and the scale takes it back exactly") {
  const std::uint32_t columns = GENERATE(1u, 31u, 256u, 1000u);
  std::mt19937 random(columns);
  std::normal_distribution<float> normal;
  const std::vector<float> sizes{1.0f, 1e-6f, 1e6f, 65504.0f, 0x1p100f, 0x1p-100f, 0x1p125f, 0x1p-140f};
  std::vector<float> x;
  for (const float size : sizes) {
    for (std::uint32_t i = 0; i < columns; ++i) x.push_back(std::min(std::max(normal(random), -2.0f), 2.0f) * size);
  }
  const Narrowed narrowed = narrow("rows_to_half", x, columns);
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    CAPTURE(r, sizes[r], columns);
    float largest = 0.0f;
    int exponent = 0;
    CHECK(std::frexp(narrowed.scales[r], &exponent) == 0.5f);  // a power of two
    CHECK(std::isnormal(narrowed.scales[r]));
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < columns; ++i) {
      const std::size_t at = r * columns + i;
      largest = std::max(largest, std::fabs(f16_to_f32(narrowed.out[at])));
      wrong += narrowed.out[at] != f32_to_f16(static_cast<float>(static_cast<double>(x[at]) / narrowed.scales[r]));
    }
    CHECK(wrong == 0);
    CHECK(largest <= 0x1p15f);
    if (sizes[r] > 0x1p-110f) CHECK(largest >= 0x1p14f);
  }
}

TEST_CASE("rows of zeros, and rows that hold what is not finite, are as they are") {
  const std::uint32_t columns = 300;
  std::vector<float> x(5 * columns, 0.0f);
  x[1 * columns + 299] = kNaN;
  x[1 * columns] = 2.0f;
  x[2 * columns + 7] = -kInfinity;
  x[3 * columns + 7] = 3.0f;  // its neighbours are no matter
  x[4 * columns + 1] = kInfinity;
  x[4 * columns + 2] = kNaN;
  const Narrowed narrowed = narrow("rows_to_half", x, columns);
  CHECK(narrowed.scales == std::vector<float>{1.0f, 1.0f, 1.0f, 0x1p-13f, 1.0f});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float value = f16_to_f32(narrowed.out[i]) * narrowed.scales[i / columns];
    if (std::isnan(x[i])) {
      REQUIRE(std::isnan(value));
    } else {
      REQUIRE(value == x[i]);
    }
  }
}

TEST_CASE("a row as f16 does not depend on the rows beside it") {
  const std::uint32_t columns = 77;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(columns), three(3 * columns, kNaN);
  for (std::uint32_t i = 0; i < columns; ++i) three[columns + i] = x[i] = normal(random);
  const Narrowed alone = narrow("rows_to_half", x, columns), among = narrow("rows_to_half", three, columns);
  REQUIRE(among.out.size() == 3 * alone.out.size());
  CHECK(std::ranges::equal(alone.out, std::span(among.out).subspan(columns, columns)));
  CHECK(alone.scales[0] == among.scales[1]);
}

TEST_CASE("rows as bf16") {
  const std::uint32_t columns = 513;
  std::vector<float> x{0.0f, -1.5f, 0x1.01p0f, 0x1.03p0f, 3e38f, 1e-40f, kInfinity, kNaN};
  x.resize(2 * columns, 0.3f);
  const Narrowed narrowed = narrow("rows_to_bf16", x, columns);
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(narrowed.out[i] == f32_to_bf16(x[i]));
}

TEST_CASE("a product's rows get their scale and bias, and are stored or added") {
  const std::uint32_t columns = GENERATE(1u, 300u, 1024u, 2500u), rows = 3, y_stride = columns + 1,
                      out_stride = columns + 2;
  std::mt19937 random(columns);
  std::normal_distribution<float> normal;
  std::vector<float> y(rows * y_stride), before(rows * out_stride), bias(columns);
  for (std::vector<float>* list : {&y, &before, &bias}) {
    for (float& v : *list) v = normal(random);
  }
  const std::vector<float> scales{0x1p-13f, 1.0f, 0x1p3f};
  for (const bool scaled : {false, true}) {
    for (const bool biased : {false, true}) {
      for (const FinishStore store : {FinishStore::set, FinishStore::add}) {
        std::vector<float> out = before;
        emulator::launch("finish_rows", {rows, (columns + kFinishTile - 1) / kFinishTile}, kGemmRowThreads, 0,
                         FinishRowsArgs{y.data(), scaled ? scales.data() : nullptr, biased ? bias.data() : nullptr,
                                        out.data(), columns, y_stride, out_stride, store});
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < out_stride; ++c) {
            const std::size_t at = r * out_stride + c;
            float value = c < columns ? y[r * y_stride + c] * (scaled ? scales[r] : 1.0f) : before[at];
            if (c < columns && biased) value = value + bias[c];
            if (c < columns && store == FinishStore::add) value = before[at] + value;
            wrong += out[at] != value;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace test_gemm_rows
