// The kernels of adapters' changes have the scalar reference's bits on every instruction set that runs here, however rows and ranks are cut.
#include <cmath>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "core/float16.hpp"
#include "cpu/instruction_set_tables.hpp"

namespace test_low_rank_kernels {

using namespace tessera;
using namespace tessera::test;
using cpu::LowRankType;

namespace {

template <class Fn>
void on_every_set(Fn fn) {
  std::vector<std::string> missing;
  for (const Table& table : tables_that_run(missing)) {
    INFO(table.set);
    fn(table.kernels.low_rank);
  }
}

std::vector<float> values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

// Numbers in a type, and the same numbers as floats.
struct Numbers {
  Numbers(std::vector<float> from, LowRankType type) : floats(std::move(from)) {
    for (float& value : floats) {
      const std::uint16_t half = type == LowRankType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      if (type == LowRankType::f32) {
        bytes.resize(bytes.size() + 4);
        std::memcpy(bytes.data() + bytes.size() - 4, &value, 4);
        continue;
      }
      value = type == LowRankType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
      bytes.resize(bytes.size() + 2);
      std::memcpy(bytes.data() + bytes.size() - 2, &half, 2);
    }
  }
  std::vector<float> floats;
  std::vector<std::byte> bytes;
};

std::size_t size_of(LowRankType type) { return type == LowRankType::f32 ? 4 : 2; }

float dot(const float* a, const float* x, std::size_t n) {
  float lanes[16] = {};
  for (std::size_t k = 0; k < n; ++k) lanes[k % 16] = std::fma(a[k], x[k], lanes[k % 16]);
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace

TEST_CASE("a few numbers in, a few out: an adapter's two products", "[kernels]") {
  on_every_set([](const cpu::LowRankKernels& set) {
    // A is one row (1, 2), B one column (10, 100).
    std::vector<float> block(cpu::kLowRankBlock * cpu::kLowRankVector);
    block[0] = 1, block[1] = 2;
    const Numbers a(block, LowRankType::f32);
    const float x[] = {3, 4};
    const std::uint32_t row = 0;
    float t = 0;
    set.down[0]({.a = a.bytes.data(), .block_bytes = 256, .ranks = 1, .inputs = 2, .x = x, .rows = &row, .n_rows = 1, .scale = 0.5f, .t = &t});
    CHECK(t == 5.5f);  // half of 1 * 3 + 2 * 4
    std::vector<float> panel(cpu::kLowRankPanel);
    panel[0] = 10, panel[1] = 100;
    const Numbers b(panel, LowRankType::f32);
    float out[] = {1, 2, 7};
    const float factors[] = {1, 2};
    set.up[0]({.b = b.bytes.data(), .rank = 1, .outputs = 2, .t = &t, .rows = &row, .n_rows = 1, .out = out});
    CHECK(out[0] == 56.0f);
    CHECK(out[1] == 552.0f);
    set.up[0]({.b = b.bytes.data(), .rank = 1, .outputs = 2, .t = &t, .rows = &row, .n_rows = 1, .factors = factors, .out = out});
    CHECK(out[0] == 111.0f);
    CHECK(out[1] == 2204.0f);
    CHECK(out[2] == 7.0f);  // behind the last output
  });
}

TEST_CASE("an adapter's products have the reference's bits, for any rank, rows and type", "[kernels]") {
  for (const LowRankType type : {LowRankType::f32, LowRankType::f16, LowRankType::bf16}) {
    for (const std::size_t rank : {1, 2, 3, 4, 5, 8, 16, 33, 64, 256}) {
      for (const std::size_t inputs : {1, 15, 16, 17, 48, 131}) {
        for (const std::size_t n_rows : {1, 2, 3, 4, 5, 9}) {
          const std::size_t padded = (inputs + 15) / 16 * 16, stride = inputs + 3;
          std::vector<float> of_a = values(rank * padded, 1);
          for (std::size_t r = 0; r < rank; ++r) std::fill_n(of_a.data() + r * padded + inputs, padded - inputs, 0.0f);
          const Numbers plain(of_a, type);
          std::vector<float> in_blocks((rank + cpu::kLowRankBlock - 1) / cpu::kLowRankBlock * cpu::kLowRankBlock * padded);
          for (std::size_t r = 0; r < rank; ++r) {
            for (std::size_t k = 0; k < inputs; ++k) {
              const std::size_t vector = r / cpu::kLowRankBlock * (padded / 16) + k / 16;
              in_blocks[(vector * cpu::kLowRankBlock + r % cpu::kLowRankBlock) * 16 + k % 16] = of_a[r * padded + k];
            }
          }
          const Numbers a(in_blocks, type);
          const std::vector<float> x = values(2 * n_rows * stride, 2);
          std::vector<std::uint32_t> rows;
          for (std::size_t i = 0; i < n_rows; ++i) rows.push_back(static_cast<std::uint32_t>(2 * i + i % 2));
          std::vector<float> expected(n_rows * rank);
          for (std::size_t i = 0; i < n_rows; ++i) {
            for (std::size_t r = 0; r < rank; ++r) {
              expected[i * rank + r] = 0.3f * dot(plain.floats.data() + r * padded, x.data() + rows[i] * stride, inputs);
            }
          }
          on_every_set([&](const cpu::LowRankKernels& set) {
            std::vector<float> t(expected.size());
            set.down[static_cast<std::size_t>(type)]({.a = a.bytes.data(), .block_bytes = cpu::kLowRankBlock * padded * size_of(type), .ranks = rank, .inputs = inputs,
                                                      .x = x.data(), .x_stride = stride, .rows = rows.data(), .n_rows = n_rows, .scale = 0.3f,
                                                      .t = t.data(), .t_stride = rank});
            CHECK(std::memcmp(t.data(), expected.data(), t.size() * sizeof(float)) == 0);
          });
          if (inputs > 17) continue;  // B does not depend on them
          const std::size_t outputs = inputs == 17 ? 100 : 4 * inputs;  // two panels, or a part of one
          const Numbers b(values(2 * rank * cpu::kLowRankPanel, 3), type);
          const std::vector<float> before = values(2 * n_rows * 110, 4), factors = values(outputs, 5);
          for (const bool scales : {false, true}) {
            std::vector<float> wanted = before;
            for (std::size_t i = 0; i < n_rows; ++i) {
              for (std::size_t o = 0; o < outputs; ++o) {
                float sum = 0;
                for (std::size_t r = 0; r < rank; ++r) {
                  sum = std::fma(expected[i * rank + r], b.floats[(o / cpu::kLowRankPanel * rank + r) * cpu::kLowRankPanel + o % cpu::kLowRankPanel], sum);
                }
                float& out = wanted[rows[i] * 110 + o];
                out = out + sum;
                if (scales) out = out * factors[o];
              }
            }
            on_every_set([&](const cpu::LowRankKernels& set) {
              std::vector<float> out = before;
              set.up[static_cast<std::size_t>(type)]({.b = b.bytes.data(), .rank = rank, .outputs = outputs, .t = expected.data(), .t_stride = rank,
                                                      .rows = rows.data(), .n_rows = n_rows, .factors = scales ? factors.data() : nullptr,
                                                      .out = out.data(), .out_stride = 110});
              CHECK(std::memcmp(out.data(), wanted.data(), out.size() * sizeof(float)) == 0);
            });
          }
        }
      }
    }
  }
}

}  // namespace test_low_rank_kernels
