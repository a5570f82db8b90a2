// Convolutions and recurrences of every instruction set that runs here have the scalar reference's bits.
#include <cstring>
#include <random>

#include "catch.hpp"
#include "cpu/instruction_set_tables.hpp"
#include "cpu/reference_recurrent.hpp"

namespace test_recurrent_kernels {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<float> values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

template <class Fn>
void on_every_set(Fn fn) {
  std::vector<std::string> missing;
  for (const Table& table : tables_that_run(missing)) {
    INFO(table.set);
    fn(table.kernels);
  }
}

bool same(const std::vector<float>& a, const float* b) { return std::memcmp(a.data(), b, a.size() * sizeof(float)) == 0; }

// What a stripe of so many values holds, without its empty lanes.
std::vector<float> without_empty(const std::vector<float>& stripe, std::size_t n) {
  std::vector<float> kept;
  for (std::size_t i = 0; i < stripe.size(); ++i) {
    if (i % 16 < n) kept.push_back(stripe[i]);
  }
  return kept;
}

constexpr std::size_t kKeys[] = {1, 2, 3, 4, 5, 7, 8, 16, 30, 64, 128, 131};

}  // namespace

TEST_CASE("a few numbers in, a few out: a delta rule, a scan, a convolution", "[kernels]") {
  on_every_set([](const cpu::Kernels& set) {
    // Two keys, one value: the state [2][16] has one value in use behind each key.
    std::vector<float> state(2 * 16);
    const float key[] = {1, 0}, query[] = {1, 1}, value[] = {4};
    float out[] = {0};
    cpu::StateJob job{.before = state.data(), .after = state.data(), .key = key, .query = query, .value = value, .out = out,
                      .keys = 2, .n = 1, .decay = 1.0f, .rate = 0.5f, .skip = 0.25f};
    set.recurrent.delta_rule(job);  // the state behind key 0 goes half the way from 0 to 4
    CHECK(out[0] == 2.0f);
    set.recurrent.delta_rule(job);  // and half the way from 2 to 4
    CHECK(out[0] == 3.0f);
    set.recurrent.scan(job);  // 3 + 0.5 * 4, and a quarter of the value in the output
    CHECK(out[0] == 6.0f);
    CHECK(state[0] == 5.0f);
    CHECK(state[16] == 0.0f);

    const float before[] = {1, 2}, own[] = {3, 4}, weight[] = {10, 10, 1, 1}, bias[] = {0, 100};
    const float* inputs[] = {before, own};
    float sums[2] = {};
    set.recurrent.convolve({.inputs = inputs, .weight = weight, .stride = 2, .bias = bias, .out = sums, .width = 2, .n = 2});
    CHECK(sums[0] == 13.0f);   // 10 * 1 + 1 * 3
    CHECK(sums[1] == 124.0f);  // 10 * 2 + 1 * 4 + 100
  });
}

TEST_CASE("the recurrences of every instruction set have the scalar bits, in place and from state to state", "[kernels]") {
  on_every_set([](const cpu::Kernels& set) {
    for (const std::size_t keys : kKeys) {
      for (const std::size_t n : {1, 3, 8, 15, 16}) {
        for (const bool is_scan : {false, true}) {
          reference::Head head{keys, n};
          std::vector<float> state(16 * keys), next(16 * keys), out(n), expected(n);
          for (std::uint32_t row = 0; row < 6; ++row) {
            const auto q = values(keys, row), k = values(keys, 10 + row), v = values(n, 20 + row);
            const float decay = 0.9f - 0.1f * static_cast<float>(row), rate = 0.3f;
            std::vector<float>& after = row % 2 == 0 ? state : next;  // twice in each
            const cpu::StateJob job{.before = (row == 0 ? state : row % 2 == 0 ? next : state).data(), .after = after.data(),
                                    .key = k.data(), .query = q.data(), .value = v.data(), .out = out.data(),
                                    .keys = keys, .n = n, .decay = decay, .rate = rate, .skip = 0.7f};
            (is_scan ? set.recurrent.scan : set.recurrent.delta_rule)(job);
            if (is_scan) head.scan(q.data(), k.data(), v.data(), decay, rate, 0.7f, expected.data());
            else head.delta_rule(q.data(), k.data(), v.data(), decay, rate, expected.data());
            CAPTURE(keys, n, is_scan, row);
            REQUIRE(same(expected, out.data()));
            REQUIRE(same(head.state, without_empty(after, n).data()));
          }
        }
      }
    }
  });
}

TEST_CASE("convolutions of every instruction set have the scalar bits", "[kernels]") {
  on_every_set([](const cpu::Kernels& set) {
    for (const std::size_t width : {1, 2, 3, 4, 7}) {
      for (const std::size_t n : {1, 15, 16, 17, 63, 64, 65, 200}) {
        for (const bool has_bias : {false, true}) {
          reference::Convolved expected{width, n, values(width * n, 1), has_bias ? values(n, 2) : std::vector<float>(), has_bias != (n == 17)};
          const auto inputs = values(width * n, 3);
          expected.seen.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>((width - 1) * n));
          std::vector<float> row(inputs.end() - static_cast<std::ptrdiff_t>(n), inputs.end()), out = row;
          std::vector<const float*> at;
          for (std::size_t i = 0; i + 1 < width; ++i) at.push_back(inputs.data() + i * n);
          at.push_back(out.data());
          set.recurrent.convolve({.inputs = at.data(), .weight = expected.weight.data(), .stride = n,
                                  .bias = has_bias ? expected.bias.data() : nullptr, .out = out.data(), .width = width, .n = n,
                                  .silu = expected.silu});
          expected.row(row.data());
          CAPTURE(width, n, has_bias);
          REQUIRE(same(row, out.data()));
        }
      }
    }
  });
}

TEST_CASE("lengths and products of every instruction set have the scalar bits", "[kernels]") {
  on_every_set([](const cpu::Kernels& set) {
    for (const std::size_t n : {1, 5, 16, 17, 64, 128, 300}) {
      auto x = values(n, 4);
      const auto y = values(n, 5);
      std::vector<float> expected(n), out(n);
      reference::l2_norm(x.data(), 0.25f, n, expected.data());
      set.elementwise.l2_norm(x.data(), 1e-6f, 0.25f, n, out.data());
      REQUIRE(same(expected, out.data()));
      for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * y[i];
      set.elementwise.multiply(y.data(), n, x.data());
      REQUIRE(same(expected, x.data()));
    }
  });
}

}  // namespace test_recurrent_kernels
