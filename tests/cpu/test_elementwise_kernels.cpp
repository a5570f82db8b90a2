// The elementwise operations of every instruction set that runs here have the portable ones' bits.
#include <random>

#include "backend/rope_table.hpp"
#include "catch.hpp"
#include "cpu/reference_elementwise.hpp"
#include "cpu/instruction_set_tables.hpp"
#include "cpu/kernel_families.hpp"
#include "cpu/attention/rope.hpp"

namespace test_elementwise_kernels {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<float> values(std::size_t n, std::uint32_t seed, float scale = 3.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.3f, scale);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

void require_same(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    INFO("element " << i << ": " << a[i] << " and " << b[i]);
    REQUIRE(std::memcmp(&a[i], &b[i], sizeof(float)) == 0);
  }
}

template <class Fn>
void on_every_set(Fn fn) {
  std::vector<std::string> missing;
  for (const Table& table : tables_that_run(missing)) {
    INFO(table.set);
    fn(table.kernels.elementwise);
  }
}

constexpr ActivationKind kKinds[] = {ActivationKind::silu, ActivationKind::gelu_tanh, ActivationKind::gelu_erf,
                                    ActivationKind::clamped_swiglu, ActivationKind::sigmoid, ActivationKind::squared_relu,
                                    ActivationKind::tanh};
static_assert(std::size(kKinds) == kActivationKinds);
constexpr std::size_t kSizes[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 288, 1000, 2048};

}  // namespace

TEST_CASE("four numbers in, four out: norms, rope, activations, sums and products", "[kernels]") {
  on_every_set([](const cpu::Elementwise& set) {
    const float x[] = {1, 2, 3, 4}, ones[] = {1, 1, 1, 1}, zeros[] = {0, 0, 0, 0};
    std::vector<float> out(4);
    const auto is = [&](std::vector<float> want) {
      for (std::size_t i = 0; i < 4; ++i) CHECK(out[i] == Approx(want[i]).margin(1e-6));
    };
    set.rms_norm(x, ones, 0.0f, 4, out.data());  // x / sqrt((1 + 4 + 9 + 16) / 4)
    is({0.3651484f, 0.7302967f, 1.0954451f, 1.4605935f});
    set.layer_norm(x, ones, zeros, 0.0f, 4, out.data());  // (x - 2.5) / sqrt(1.25)
    is({-1.3416408f, -0.4472136f, 0.4472136f, 1.3416408f});
    set.l2_norm(x, 0.0f, 1.0f, 4, out.data());  // x / sqrt(30)
    is({0.1825742f, 0.3651484f, 0.5477226f, 0.7302967f});

    // Two pairs, the first turned by 90 degrees and the second by none: neighbours, then halves.
    const float neighbours[] = {0, 0, 1, 1, -1, 1, 0, 0}, halves[] = {0, 1, 0, 1, -1, 0, 1, 0};
    out = {1, 2, 3, 4};
    set.rope(neighbours, 2, true, out.data());
    is({-2, 1, 3, 4});
    out = {1, 2, 3, 4};
    set.rope(halves, 2, false, out.data());
    is({-3, 2, 1, 4});

    const float signs[] = {-1, 0, 1, 2};
    set.activate[static_cast<std::size_t>(ActivationKind::silu)](signs, 4, out.data());  // x / (1 + exp(-x))
    is({-0.2689414f, 0, 0.7310586f, 1.7615942f});
    set.activate[static_cast<std::size_t>(ActivationKind::squared_relu)](signs, 4, out.data());
    is({0, 0, 1, 4});
    set.activate_gated[static_cast<std::size_t>(ActivationKind::squared_relu)](signs, x, 4, out.data());
    is({0, 0, 3, 16});

    out = {10, 20, 30, 40};
    set.add(x, 4, out.data());
    is({11, 22, 33, 44});
    set.multiply(x, 4, out.data());
    is({11, 44, 99, 176});
  });
}

TEST_CASE("norms of every instruction set have the portable bits", "[kernels]") {
  on_every_set([](const cpu::Elementwise& set) {
    for (const std::size_t n : kSizes) {
      for (std::uint32_t seed = 0; seed < 4; ++seed) {
        auto x = values(n, seed);
        if (seed == 3) x[n / 2] = std::numeric_limits<float>::infinity();
        const auto weight = values(n, seed + 10), bias = values(n, seed + 20);
        std::vector<float> expected(n), out(n);
        reference::rms_norm(x.data(), weight.data(), 1e-5f, n, expected.data());
        set.rms_norm(x.data(), weight.data(), 1e-5f, n, out.data());
        require_same(out, expected);
        reference::layer_norm(x.data(), weight.data(), nullptr, 1e-5f, n, expected.data());
        set.layer_norm(x.data(), weight.data(), nullptr, 1e-5f, n, out.data());
        require_same(out, expected);
        reference::layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, expected.data());
        set.layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, x.data());  // in place
        require_same(x, expected);
      }
    }
  });
}

TEST_CASE("rope of every instruction set has the portable bits", "[kernels]") {
  on_every_set([](const cpu::Elementwise& set) {
    for (const std::size_t pairs : {1, 3, 8, 31, 32, 33, 64, 80}) {
      for (const bool interleaved : {false, true}) {
        std::vector<double> frequencies(pairs);
        for (std::size_t i = 0; i < pairs; ++i) {
          frequencies[i] = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs));
        }
        for (const std::uint64_t position : {0u, 1u, 77u, 100000u}) {
          std::vector<float> table(2 * pairs), factors(4 * pairs);
          const backend::RopeTable rope{.pairs = interleaved ? RopePairs::interleaved : RopePairs::halves,
                                        .frequencies = frequencies,
                                        .magnitude = pairs % 2 == 0 ? 1.0f : 1.25f};
          backend::rope_table(rope, position, table.data());
          cpu::rope_factors(rope, position, factors.data());
          auto expected = values(2 * pairs + 5, 2);
          auto head = expected;
          reference::rope(table.data(), pairs, interleaved, expected.data());
          set.rope(factors.data(), pairs, interleaved, head.data());
          require_same(head, expected);
        }
      }
    }
  });
}

TEST_CASE("activations and sums of every instruction set have the portable bits", "[kernels]") {
  on_every_set([](const cpu::Elementwise& set) {
    for (const std::size_t n : kSizes) {
      auto x = values(n, 1);
      const float special[] = {0.0f, -0.0f, 100.0f, -100.0f, 1e-40f, INFINITY, -INFINITY, NAN, 3.4e38f, -88.5f};
      for (std::size_t i = 0; i < n / 3 && i < std::size(special); ++i) x[i * 3] = special[i];
      for (const auto kind : kKinds) {
        const auto k = static_cast<std::size_t>(kind);
        std::vector<float> expected(n);
        reference::activate(kind, x.data(), n, expected.data());
        auto out = x;
        set.activate[k](out.data(), n, out.data());
        require_same(out, expected);
        const auto up = values(n, 2, 6.0f);
        out = up;
        set.activate_gated[k](x.data(), out.data(), n, out.data());
        reference::activate_gated(kind, x.data(), up.data(), n, expected.data());
        require_same(out, expected);
      }
      auto sum = values(n, 3), expected = sum;
      for (std::size_t i = 0; i < n; ++i) expected[i] += x[i];
      set.add(x.data(), n, sum.data());
      require_same(sum, expected);
    }
  });
}

TEST_CASE("activations have the portable bits over all of exp's range", "[kernels]") {
  std::vector<float> x;
  for (float v = -100.0f; v < 100.0f; v += 0.0137f) x.push_back(v);
  for (const float edge : {87.25f, 88.0f, 89.0f, 0.63f, 0.92f, 4.0f, 0.5f * 0.6931472f, 125.0f * 0.6931472f}) {
    for (const float v : {edge, -edge}) {
      for (const float beside : {v, std::nextafter(v, -1000.0f), std::nextafter(v, 1000.0f)}) x.push_back(beside);
    }
  }
  on_every_set([&](const cpu::Elementwise& set) {
    for (const auto kind : kKinds) {
      std::vector<float> expected(x.size()), out(x.size());
      reference::activate(kind, x.data(), x.size(), expected.data());
      set.activate[static_cast<std::size_t>(kind)](x.data(), x.size(), out.data());
      require_same(out, expected);
    }
  });
}

}  // namespace test_elementwise_kernels
