// Products of few rows on the emulator: family cuda-f32 as it is written down, whatever the kernel, the grid and the
// neighbours.
#include <emulator/launch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "cuda/products/linear_plan.hpp"
#include "weights.hpp"

namespace test_linear_few {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT
using namespace tessera::test;  // NOLINT

namespace {

DType any_type() { return GENERATE(from_range(device_types().begin(), device_types().end())); }

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_rows(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// The order of linear_few.hpp, said plainly.
float expected(const Weights& w, std::uint32_t output, const float* x) {
  const FormParts parts = form_parts(w.matrix.form);
  const std::uint32_t units = (w.inputs + parts.unit - 1) / parts.unit;
  float lanes[32] = {};
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    float& acc = lanes[unit % 32];
    float sum = 0.0f;
    for (std::uint32_t k = unit * parts.unit; k < (unit + 1) * parts.unit; ++k) {
      const bool there = k < w.inputs;
      acc = std::fma(there ? packed_factor(w.matrix, output, k) : 0.0f, there ? x[k] : 0.0f, acc);
      sum = sum + (there ? x[k] : 0.0f);
    }
    if (parts.has_min) acc = std::fma(packed_scale(w.matrix, output, unit * parts.unit).addend, sum, acc);
  }
  for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
    for (std::uint32_t l = 0; l < distance; ++l) lanes[l] = lanes[l] + lanes[l + distance];
  }
  return lanes[0];
}

struct Call {
  const Weights& w;
  const std::vector<float>& x;  // [n_rows][x_stride]
  std::uint32_t n_rows, x_stride;
  const float* bias = nullptr;
  LinearStore store = LinearStore::set;
};

// `out` [n_rows][outputs] by the kernel for `at_once` rows, with blocks of `threads`.
void run(const Call& call, unsigned at_once, unsigned threads, float* out) {
  std::string kernel = "linear_few_";
  kernel.append(form_name(call.w.matrix.form)).append("_r").append(std::to_string(at_once));
  const unsigned outputs = threads / 32 * kLinearOutputs;
  emulator::launch(
      kernel.c_str(), {(call.n_rows + at_once - 1) / at_once, (call.w.outputs + outputs - 1) / outputs}, threads, 0,
      LinearArgs{call.w.matrix, call.x.data(), call.bias, out, call.n_rows, call.x_stride, call.w.outputs, call.store});
}

std::vector<float> product(const Call& call, unsigned at_once, unsigned threads = 64) {
  std::vector<float> out(std::size_t{call.n_rows} * call.w.outputs, kNaN);
  run(call, at_once, threads, out.data());
  return out;
}

// Block sizes' multiples around a chunk of the staged rows and around 32 lanes.
std::vector<std::uint32_t> inputs_of(DType type) {
  const auto values = static_cast<std::uint32_t>(formats::block_of(type)->values);
  if (values == 1) return {1, 7, 256, 1027, 4100};
  if (values == 32) return {32, 96, 1056, 4128};
  return {256, 768, 2304, 8448};
}

void check_order(const Weights& w, std::uint32_t seed) {
  const std::vector<float> x = random_rows(std::size_t{3} * w.inputs, seed);
  std::vector<float> right;
  for (std::uint32_t r = 0; r < 3; ++r) {
    for (std::uint32_t o = 0; o < w.outputs; ++o) right.push_back(expected(w, o, x.data() + std::size_t{r} * w.inputs));
  }
  for (const unsigned at_once : {1u, 2u, 4u, 8u}) {
    CAPTURE(at_once, w.inputs, w.outputs);
    CHECK(product({w, x, 3, w.inputs}, at_once) == right);
  }
}

}  // namespace

TEST_CASE("four numbers in, four out: a product of a matrix and a row") {
  const float values[] = {1, 0, 0, 0,    // x0
                          0, 1, 0, 0,    // x1
                          1, 1, 1, 1,    // the sum
                          0, 2, 0, -1};  // 2 x1 - x3
  std::vector<std::byte> rows(sizeof values);
  std::memcpy(rows.data(), values, sizeof values);
  const Weights w(DType::f32, 4, 4, rows);
  const std::vector<float> x{1, 2, 3, 4};
  CHECK(product({w, x, 1, 4}, 1) == std::vector<float>{1, 2, 10, 0});
}

TEST_CASE("products have the bits of the written order, for every number of rows at once") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  for (const std::uint32_t inputs : inputs_of(type))
    check_order(Weights(type, 5, inputs, encoded(type, 5, inputs, inputs)), 1);
}

TEST_CASE("products of odd numbers of outputs") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const auto inputs = static_cast<std::uint32_t>(formats::block_of(type)->values == 1 ? 36 : 256);
  for (const std::uint32_t outputs : {1u, 3u, 17u, 300u}) {
    check_order(Weights(type, outputs, inputs, encoded(type, outputs, inputs, outputs)), 2);
  }
}

TEST_CASE("products of any blocks, scales negative and denormal") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const auto values = static_cast<std::uint32_t>(formats::block_of(type)->values);
  const std::uint32_t inputs = values == 1 ? 256 : 3 * values;
  check_order(Weights(type, 6, inputs, any_blocks(type, 6 * inputs / values, 9)), 3);
}

TEST_CASE("products come near to the exact ones") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  for (const std::uint32_t inputs : inputs_of(type)) {
    const Weights w(type, 9, inputs, encoded(type, 9, inputs, 40 + inputs));
    const FormParts parts = form_parts(w.matrix.form);
    const std::vector<float> x = random_rows(inputs, 5);
    const std::vector<float> out = product({w, x, 1, inputs}, 1);
    for (std::uint32_t o = 0; o < w.outputs; ++o) {
      const std::vector<float> row = w.row(o);
      double exact = 0.0, size = 0.0;
      for (std::uint32_t k = 0; k < inputs; ++k) {
        exact += static_cast<double>(row[k]) * x[k];
        double factor = std::fabs(static_cast<double>(packed_factor(w.matrix, o, k)));
        if (parts.has_min) factor += std::fabs(static_cast<double>(packed_scale(w.matrix, o, k).addend));
        size += factor * std::fabs(static_cast<double>(x[k]));
      }
      // Each of a lane's steps, a unit's sum and minimum, the format's own rounding, and five of the warp round once,
      // by at most 2^-24 of what has been added up.
      const double steps = inputs / 32.0 + 2.0 * parts.unit + 8;
      CHECK(std::fabs(out[o] - exact) <= steps * 0x1p-24 * size);
    }
  }
}

TEST_CASE("a row's products are its own: any number of rows, any kernel, any neighbours") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const auto inputs = static_cast<std::uint32_t>(formats::block_of(type)->values == 1 ? 260 : 1280);
  const Weights w(type, 6, inputs, encoded(type, 6, inputs, 11));
  const std::uint32_t stride = inputs + 4;
  std::vector<float> x(std::size_t{20} * stride, kNaN);  // between the rows, too
  const std::vector<float> values = random_rows(std::size_t{20} * inputs, 6);
  for (std::size_t r = 0; r < 20; ++r) std::copy_n(values.data() + r * inputs, inputs, x.data() + r * stride);
  const std::vector<float> alone = product({w, x, 20, stride}, 1, 32);
  for (std::uint32_t n = 1; n <= 20; ++n) {
    const LinearPlan plan = plan_linear_few(n, w.outputs, 132);
    const std::vector<float> out = product({w, x, n, stride}, plan.rows_at_once, plan.threads);
    CAPTURE(n, plan.rows_at_once);
    REQUIRE(out.size() <= alone.size());
    CHECK(std::ranges::equal(out, std::span(alone).first(out.size())));
  }
  // Every row in turn among rows of NaN and infinity, and none beyond the last is read: these are not there.
  for (const unsigned at_once : {2u, 4u, 8u}) {
    for (std::uint32_t r = 0; r < 9; ++r) {
      std::vector<float> among(std::size_t{9} * stride, r % 2 == 0 ? kNaN : std::numeric_limits<float>::infinity());
      std::copy_n(x.data() + r * stride, inputs, among.data() + r * stride);
      const std::vector<float> out = product({w, among, 9, stride}, at_once, 256);
      CAPTURE(at_once, r);
      REQUIRE(std::min(out.size(), alone.size()) >= (std::size_t{r} + 1) * 6);
      CHECK(std::ranges::equal(std::span(out).subspan(std::size_t{r} * 6, 6), std::span(alone).subspan(std::size_t{r} * 6, 6)));
      for (std::uint32_t other = 0; other < 9; ++other) {
        if (other != r) CHECK(!std::isfinite(out[other * 6]));
      }
    }
  }
}

TEST_CASE("rows that lie at no multiple of 16 bytes") {
  for (const DType type : {DType::f32, DType::bf16, DType::q8_0}) {
    const std::uint32_t inputs = 96, stride = 97;
    const Weights w(type, 4, inputs, encoded(type, 4, inputs, 2));
    const std::vector<float> x = random_rows(std::size_t{5} * stride, 8);
    const std::vector<float> out = product({w, x, 5, stride}, 4);
    for (std::uint32_t r = 0; r < 5; ++r) {
      for (std::uint32_t o = 0; o < 4; ++o) CHECK(out[r * 4 + o] == expected(w, o, x.data() + r * stride));
    }
  }
}

TEST_CASE("weights whose blocks are opened: as the format decodes them, and in the same order") {
  const DType type = GENERATE(from_range(opened_types().begin(), opened_types().end()));
  CAPTURE(to_string(type));
  for (const std::uint32_t inputs : {256u, 768u, 8448u}) {
    const Weights w(type, 5, inputs, encoded(type, 5, inputs, inputs));
    std::size_t wrong = 0;
    for (std::uint32_t o = 0; o < 5; ++o) {
      const std::vector<float> values = w.row(o);
      for (std::uint32_t k = 0; k < inputs; ++k) {
        const float addend = packed_scale(w.matrix, o, k).addend;
        wrong += packed_factor(w.matrix, o, k) + addend != values[k];
      }
    }
    CHECK(wrong == 0);
    check_order(w, inputs);
  }
}

TEST_CASE("products with a bias, and added to what is there") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const std::uint32_t outputs = 7, n_rows = 5;
  const auto inputs = static_cast<std::uint32_t>(formats::block_of(type)->values == 1 ? 40 : 512);
  const Weights w(type, outputs, inputs, encoded(type, outputs, inputs, 3));
  const std::vector<float> x = random_rows(std::size_t{n_rows} * inputs, 4), bias = random_rows(outputs, 12);
  const std::vector<float> before = random_rows(std::size_t{n_rows} * outputs, 13);
  const std::vector<float> plain = product({w, x, n_rows, inputs}, 1);
  for (const unsigned at_once : {1u, 2u, 4u, 8u}) {
    for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
      std::vector<float> set = before, added = before;
      run({w, x, n_rows, inputs, b, LinearStore::set}, at_once, 32, set.data());
      run({w, x, n_rows, inputs, b, LinearStore::add}, at_once, 32, added.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const float value = b != nullptr ? plain[i] + b[i % outputs] : plain[i];
        wrong += set[i] != value;
        wrong += added[i] != before[i] + value;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the order of blocks and threads does not matter") {
  const Weights w(DType::q4_k, 300, 2304, encoded(DType::q4_k, 300, 2304, 3));
  const std::vector<float> x = random_rows(std::size_t{9} * 2304, 4);
  const std::vector<float> right = product({w, x, 9, 2304}, 8, 256);
  for (const std::uint64_t seed : {1, 2, 7}) {
    emulator::set_order(seed);
    CHECK(product({w, x, 9, 2304}, 8, 256) == right);
    CHECK(product({w, x, 9, 2304}, 1, 128) == right);
  }
  emulator::set_order(0);
}

TEST_CASE("plans cover all rows and outputs with the fewest passes") {
  for (std::uint32_t n = 1; n <= 70; ++n) {
    for (const std::uint32_t outputs : {1u, 3u, 300u, 1024u, 4096u, 128256u, 262144u}) {
      const LinearPlan plan = plan_linear_few(n, outputs, 132);
      CAPTURE(n, outputs, plan.rows_at_once, plan.threads);
      CHECK((plan.rows_at_once == 1 || plan.rows_at_once == 2 || plan.rows_at_once == 4 || plan.rows_at_once == 8));
      CHECK(plan.grid_x == (n + 7) / 8);
      CHECK(plan.grid_x * plan.rows_at_once >= n);
      CHECK(plan.threads % 32 == 0);
      CHECK((plan.threads >= 32 && plan.threads <= kLinearThreads));
      CHECK(plan.grid_y <= 65535);
      CHECK(std::uint64_t{plan.grid_y} * (plan.threads / 32) * kLinearOutputs >= outputs);
    }
  }
}

}  // namespace test_linear_few
