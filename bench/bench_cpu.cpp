// The CPU kernels by themselves, on one thread: a matrix product per weight format and number of rows. Counters say how
// many weight bytes or multiplications a second that is. Attention is in bench_kv.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include <tessera/formats/formats.hpp>

#include "cpu/packed_matrix.hpp"
#include "cpu/reference_linear.hpp"

using namespace tessera;

namespace {

constexpr std::size_t kInputs = 2048, kOutputs = 2048;

std::vector<float> random_values(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// state.range: format, rows.
void linear(benchmark::State& state) {
  const backend::MatrixShape shape{static_cast<DType>(state.range(0)), kOutputs, kInputs};
  const auto rows = static_cast<std::size_t>(state.range(1));
  const auto source = random_values(kInputs * kOutputs);
  std::vector<std::byte> file(kOutputs * cpu::row_bytes(shape)), packed(cpu::packed_bytes(shape));
  formats::visit(shape.dtype, [&]<class F>(std::type_identity<F>) {
    for (std::size_t i = 0; i < source.size() / F::block_values; ++i) {
      F::encode(source.data() + i * F::block_values, file.data() + i * F::block_bytes);
    }
  });
  const auto form = formats::packed_form_of(shape.dtype);
  const std::size_t panel_bytes = cpu::panel_bytes(form, kInputs);
  for (std::size_t panel = 0; panel < kOutputs / cpu::kPanel; ++panel) {
    cpu::pack_panel(shape, file.data() + panel * cpu::kPanel * cpu::row_bytes(shape), cpu::kPanel,
                    packed.data() + panel * panel_bytes);
  }
  cpu::Kernels kernels;
  cpu::add_reference_kernels(kernels);
  const cpu::Linear& kernel = kernels.product(cpu::Family::reference, form).of(rows);
  const auto x = random_values(rows * kInputs);
  std::vector<float> out(rows * kOutputs), scratch(kernel.scratch_bytes / sizeof(float));
  for (auto _ : state) {
    kernel.run({.weights = packed.data(),
                .panel_bytes = panel_bytes,
                .panels = kOutputs / cpu::kPanel,
                .inputs = kInputs,
                .outputs = kOutputs,
                .x = reinterpret_cast<const std::byte*>(x.data()),
                .x_stride = kInputs * sizeof(float),
                .rows = rows,
                .out = out.data(),
                .out_stride = kOutputs,
                .scratch = reinterpret_cast<std::byte*>(scratch.data())});
    benchmark::DoNotOptimize(out.data());
  }
  const auto n = static_cast<double>(state.iterations());
  state.SetLabel(std::string(to_string(shape.dtype)));
  state.counters["weight_bytes"] = benchmark::Counter(n * static_cast<double>(file.size()), benchmark::Counter::kIsRate);
  state.counters["flop"] = benchmark::Counter(n * 2.0 * static_cast<double>(rows * kInputs * kOutputs), benchmark::Counter::kIsRate);
}

}  // namespace

BENCHMARK(linear)->ArgNames({"format", "rows"})->ArgsProduct({{0, 1, 30, 8, 2, 3, 6, 7, 12, 13, 14}, {1, 16, 128}});
