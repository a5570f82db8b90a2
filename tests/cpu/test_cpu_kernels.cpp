// The CPU kernels equal the scalar reference of their family bit for bit, for every weight format, shape and number of
// rows; and a matrix product agrees with Eigen's, which nobody here wrote.
#include <Eigen/Core>
#include <cstring>
#include <random>

#include <tessera/kv/kv_cache.hpp>

#include "backend/rope_table.hpp"
#include "catch.hpp"
#include "cpu/attention/reference_attention.hpp"
#include "cpu/attention/write_kv.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/reference.hpp"
#include "cpu/reference_elementwise.hpp"
#include "cpu/products/reference_linear.hpp"
#include "cpu/attention/rope.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"
#include "core/float16.hpp"

namespace test_cpu_kernels {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<float> random_values(std::size_t n, std::uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Weights {
  backend::Matrix matrix;
  std::vector<std::byte> packed;
  std::vector<float> values;  // [outputs, inputs], as the format holds them
};

template <class F>
Weights make_weights(std::size_t outputs, std::size_t inputs, std::uint32_t seed) {
  const auto source = random_values(outputs * inputs, seed, 0.1f);
  std::vector<std::byte> file(source.size() / F::block_values * F::block_bytes);
  Weights weights;
  weights.values.resize(source.size());
  for (std::size_t i = 0; i < source.size() / F::block_values; ++i) {
    test::encode_or_make_up<F>(source.data() + i * F::block_values, file.data() + i * F::block_bytes, static_cast<std::uint32_t>(i));
    F::decode(file.data() + i * F::block_bytes, weights.values.data() + i * F::block_values);
  }
  weights.matrix.shape = {.dtype = F::dtype, .outputs = outputs, .inputs = inputs};
  weights.packed.resize(cpu::packed_bytes(weights.matrix.shape));
  weights.matrix.form = F::packed_form;
  const std::size_t row_bytes = cpu::row_bytes(weights.matrix.shape), panel_bytes = cpu::panel_bytes(F::packed_form, inputs);
  std::fill(weights.packed.begin(), weights.packed.end(), std::byte{0xff});  // packing leaves none of it
  const std::size_t width = cpu::panel_outputs(F::packed_form);
  for (std::size_t row = 0; row < outputs; row += width) {
    cpu::pack_panel(weights.matrix.shape, file.data() + row * row_bytes, std::min(width, outputs - row),
                    weights.packed.data() + row / width * panel_bytes);
  }
  weights.matrix.data = weights.packed.data();
  return weights;
}

std::vector<float> product(const backend::Matrix& matrix, const std::vector<float>& x, std::size_t rows) {
  cpu::Kernels kernels;
  cpu::add_reference_kernels(kernels);
  const cpu::Linear& kernel = kernels.product(cpu::Family::reference, matrix.form).of(rows);
  const std::size_t inputs = matrix.shape.inputs, outputs = matrix.shape.outputs;
  std::vector<float> out(rows * outputs), scratch(kernel.scratch_bytes / sizeof(float));
  kernel.run({.weights = matrix.data,
              .panel_bytes = cpu::panel_bytes(matrix.form, inputs),
              .panels = cpu::panels_of(matrix.shape),
              .inputs = inputs,
              .outputs = outputs,
              .x = reinterpret_cast<const std::byte*>(x.data()),
              .x_stride = inputs * sizeof(float),
              .rows = rows,
              .out = out.data(),
              .out_stride = outputs,
              .scratch = reinterpret_cast<std::byte*>(scratch.data())});
  return out;
}

template <class F>
void check_format() {
  const std::size_t block = F::block_values;
  for (const std::size_t outputs : {1u, 15u, 16u, 37u, 64u}) {
    for (const std::size_t blocks : {1u, 2u, 9u, 40u}) {
      const std::size_t inputs = block * (block > 32 ? std::min<std::size_t>(blocks, 3) : blocks) + (block == 1 ? 260 : 0);
      const Weights weights = make_weights<F>(outputs, inputs, static_cast<std::uint32_t>(outputs + blocks));
      std::vector<float> row(inputs);
      for (std::size_t n = 0; n < outputs; ++n) {
        cpu::unpack_row(weights.matrix, n, row.data());
        REQUIRE(std::memcmp(row.data(), weights.values.data() + n * inputs, inputs * sizeof(float)) == 0);
      }
      for (const std::size_t rows : {1u, 2u, 3u, outputs == 64 && blocks == 1 ? 128u : 17u}) {
        const auto x = random_values(rows * inputs, static_cast<std::uint32_t>(rows));
        std::vector<float> expected(rows * outputs);
        for (std::size_t m = 0; m < rows; ++m) {
          for (std::size_t n = 0; n < outputs; ++n) {
            expected[m * outputs + n] = reference_dot(x.data() + m * inputs, weights.values.data() + n * inputs, inputs);
          }
        }
        INFO(to_string(F::dtype) << " " << outputs << " x " << inputs << ", " << rows << " rows");
        REQUIRE(same(product(weights.matrix, x, rows), expected));
      }
    }
  }
}

template <class... Formats>
void check_formats(formats::List<Formats...>) {
  (check_format<Formats>(), ...);
}

}  // namespace

TEST_CASE("matrix products of every format equal the scalar reference", "[cpu]") { check_formats(formats::All{}); }

TEST_CASE("products of extreme values equal the scalar reference", "[cpu]") {
  const std::size_t inputs = 300, outputs = 20;
  Weights weights = make_weights<formats::F32>(outputs, inputs, 1);
  auto x = random_values(inputs, 2);
  const float extremes[] = {0.0f, -0.0f, 1e-40f, -1e-42f, 3e38f, -3e38f, 1e-30f, 1e30f};
  std::mt19937 random(3);
  for (float& value : x) {
    if (random() % 3 == 0) value = extremes[random() % 8];
  }
  std::vector<float> expected(outputs);
  for (std::size_t n = 0; n < outputs; ++n) {
    expected[n] = reference_dot(x.data(), weights.values.data() + n * inputs, inputs);
  }
  CHECK(same(product(weights.matrix, x, 1), expected));
}

TEST_CASE("a matrix product agrees with Eigen's", "[cpu]") {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::size_t inputs = 1000, outputs = 77, rows = 33;
  const Weights weights = make_weights<formats::F32>(outputs, inputs, 5);
  const auto x = random_values(rows * inputs, 6);
  const auto out = product(weights.matrix, x, rows);
  const RowMajor expected = Eigen::Map<const RowMajor>(x.data(), rows, inputs) *
                            Eigen::Map<const RowMajor>(weights.values.data(), outputs, inputs).transpose();
  // Two orders of 1,000 additions of terms of about 0.1: a few hundred roundings of 2^-24 of sums of about 3.
  CHECK((Eigen::Map<const RowMajor>(out.data(), rows, outputs) - expected).cwiseAbs().maxCoeff() < 1e-4f);
}

TEST_CASE("attention equals the scalar reference, over pages, chunks, windows and unwritten slots", "[cpu]") {
  const std::size_t key_dim = 20, value_dim = 12, kv_heads = 2, group = 3, positions = 700;
  const float scale = 0.3f;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::uint32_t page_tokens : {32u, 64u}) {
      const KvLayerShape shapes[] = {{kv_heads, key_dim, value_dim}, {kv_heads, key_dim, value_dim}};
      auto layout = make_kv_layout(shapes, dtype, page_tokens);
      REQUIRE(layout);
      auto cache = KvCache::contiguous(*std::move(layout), {.capacity = 1024}, system_memory());
      REQUIRE(cache);
      REQUIRE(cache->reserve(positions));
      const KvView kv = cache->view();
      // What no token wrote must not matter: fill everything with NaN first.
      for (std::size_t page = 0; page * page_tokens < positions; ++page) {
        std::memset(kv.pages[0][page], 0xff, cache->layout().page_bytes());
      }
      const auto keys = random_values(positions * kv_heads * key_dim, 1);
      const auto values = random_values(positions * kv_heads * value_dim, 2);
      std::vector<float> held_keys = keys, held_values = values;
      if (dtype == DType::f16) {
        for (float& x : held_keys) x = f16_to_f32(f32_to_f16(x));
        for (float& x : held_values) x = f16_to_f32(f32_to_f16(x));
      }
      const auto q = random_values(kv_heads * group * key_dim, 3);
      std::vector<float> out(group * value_dim), scratch(cpu::reference_attention_floats(group, key_dim, value_dim));
      const std::vector<float> sinks = {30.0f, -100.0f, 0.5f, -2.0f, 1.0f, 3.0f};  // one outweighs all, one weighs nothing
      const backend::Vector sink_vector{sinks.data(), sinks.size()};
      std::uint64_t written = 0;
      for (const std::uint64_t position : {0u, 1u, 31u, 32u, 33u, 255u, 256u, 257u, 511u, 512u, 699u}) {
        for (; written <= position; ++written) {
          for (std::size_t head = 0; head < kv_heads; ++head) {
            cpu::write_kv(kv, 1, head, written, keys.data() + (written * kv_heads + head) * key_dim,
                          values.data() + (written * kv_heads + head) * value_dim);
          }
        }
        for (const std::uint32_t window : {0u, 1u, 5u, 40u, 41u, 256u, 300u, 301u}) {
          for (std::size_t head = 0; head < kv_heads; ++head) {
            const bool has_sinks = window % 2 != 0;
            const float softcap = window >= 40 ? 0.8f : 0.0f;
            cpu::attend_reference(kv, {.layer = 1, .n_heads = kv_heads * group, .window = window, .scale = scale, .softcap = softcap,
                                       .sinks = has_sinks ? &sink_vector : nullptr},
                                  head, position, position + 1, q.data() + head * group * key_dim, out.data(), scratch.data());
            const std::uint64_t begin = window != 0 && position + 1 > window ? position + 1 - window : 0;
            for (std::size_t h = 0; h < group; ++h) {
              const auto expected = reference_attention(
                  q.data() + (head * group + h) * key_dim, key_dim, value_dim, scale, begin, position + 1,
                  [&](std::uint64_t j) { return held_keys.data() + (j * kv_heads + head) * key_dim; },
                  [&](std::uint64_t j) { return held_values.data() + (j * kv_heads + head) * value_dim; },
                  softcap, has_sinks ? &sinks[head * group + h] : nullptr);
              INFO(to_string(dtype) << ", pages of " << page_tokens << ", position " << position << ", window " << window);
              REQUIRE(std::memcmp(out.data() + h * value_dim, expected.data(), value_dim * sizeof(float)) == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("norms equal the scalar reference", "[cpu]") {
  for (const std::size_t n : {1u, 15u, 16u, 17u, 100u, 4544u}) {
    const auto x = random_values(n, 1, 3.0f), weight = random_values(n, 2), bias = random_values(n, 3);
    std::vector<float> out(n), expected(n), terms(n);
    for (std::size_t i = 0; i < n; ++i) terms[i] = x[i] * x[i];
    const float rms = 1.0f / std::sqrt(reference_lane_sum(terms) / static_cast<float>(n) + 1e-5f);
    for (std::size_t i = 0; i < n; ++i) expected[i] = (x[i] * rms) * weight[i];
    reference::rms_norm(x.data(), weight.data(), 1e-5f, n, out.data());
    CHECK(same(out, expected));

    const float mean = reference_lane_sum(x) / static_cast<float>(n);
    for (std::size_t i = 0; i < n; ++i) terms[i] = (x[i] - mean) * (x[i] - mean);
    const float scale = 1.0f / std::sqrt(reference_lane_sum(terms) / static_cast<float>(n) + 1e-5f);
    for (std::size_t i = 0; i < n; ++i) {
      const float scaled = ((x[i] - mean) * scale) * weight[i];
      expected[i] = scaled + bias[i];
    }
    reference::layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, out.data());
    CHECK(same(out, expected));
  }
}

TEST_CASE("rope rotates pairs by their angles", "[cpu]") {
  const std::size_t pairs = 8;
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) frequencies[i] = std::pow(10000.0, -static_cast<double>(i) / pairs);
  for (const std::uint64_t position : {0u, 1u, 77u, 100000u}) {
    std::vector<float> table(2 * pairs);
    backend::rope_table({.frequencies = frequencies}, position, table.data());
    for (const bool interleaved : {true, false}) {
      const auto x = random_values(20, 4);  // the last four do not rotate
      auto out = x;
      cpu::rope(table.data(), pairs, interleaved, out.data());
      for (std::size_t i = 0; i < pairs; ++i) {
        const std::size_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
        const double angle = static_cast<double>(position) * frequencies[i];
        CHECK(out[a] == Approx(x[a] * std::cos(angle) - x[b] * std::sin(angle)).margin(1e-6));
        CHECK(out[b] == Approx(x[a] * std::sin(angle) + x[b] * std::cos(angle)).margin(1e-6));
      }
      CHECK(std::memcmp(out.data() + 16, x.data() + 16, 4 * sizeof(float)) == 0);
    }
  }
}

}  // namespace test_cpu_kernels
