// Measures, on one thread, the operations that are neither matrix products nor attention (norms, activations, rope, ...), and the
// preparation of a product's input row. Each benchmark is called `OPERATION/SET` and runs one operation with the kernels of one instruction
// set, on a row of 5632 values (for rope: 88 heads of 64).
#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "cpu/instruction_sets.hpp"

using namespace tessera;

namespace {

constexpr std::size_t kColumns = 5632, kHeads = 88;

struct Row {
  std::vector<float> x = std::vector<float>(kColumns), y = x, weight = x;
  std::vector<std::byte> prepared = std::vector<std::byte>(8 * kColumns + 64);

  Row() {
    for (std::size_t i = 0; i < kColumns; ++i) {
      x[i] = std::sin(static_cast<float>(i));
      weight[i] = std::cos(static_cast<float>(i));
    }
  }
  std::byte* aligned() { return prepared.data() + (64 - reinterpret_cast<std::uintptr_t>(prepared.data()) % 64) % 64; }
};

void add(const std::string& name, std::function<void(Row&)> operation) {
  benchmark::RegisterBenchmark(name.c_str(), [operation](benchmark::State& state) {
    Row row;
    for (auto _ : state) {
      operation(row);
      benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kColumns));
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    const cpu::Kernels kernels = cpu::kernels_of(support.set);
    const cpu::Elementwise& set = kernels.elementwise;
    const std::string at = std::string("/").append(to_string(support.set));
    add("rms_norm" + at, [set](Row& r) { set.rms_norm(r.x.data(), r.weight.data(), 1e-5f, kColumns, r.y.data()); });
    add("layer_norm" + at, [set](Row& r) { set.layer_norm(r.x.data(), r.weight.data(), nullptr, 1e-5f, kColumns, r.y.data()); });
    for (const bool interleaved : {false, true}) {
      add((interleaved ? "rope_interleaved" : "rope_halves") + at, [set, interleaved](Row& r) {
        for (std::size_t head = 0; head < kHeads; ++head) {
          set.rope(r.weight.data(), kColumns / kHeads / 2, interleaved, r.y.data() + head * (kColumns / kHeads));
        }
      });
    }
    const char* const activations[] = {"silu", "gelu_tanh", "gelu_erf", "clamped_swiglu"};
    for (std::size_t kind = 0; kind < std::size(activations); ++kind) {
      add(activations[kind] + at, [set, kind](Row& r) { set.activate[kind](r.x.data(), kColumns, r.y.data()); });
    }
    add("add" + at, [set](Row& r) { set.add(r.x.data(), kColumns, r.y.data()); });
    const char* const forms[] = {"", "int8x32", "int8x256", "bf16", "bf16x2"};
    for (std::size_t form = 1; form < cpu::kInputForms; ++form) {
      add(std::string("prepare_") + forms[form] + at,
          [fn = kernels.preparation(static_cast<cpu::InputForm>(form))](Row& r) { fn(r.x.data(), kColumns, r.aligned(), 1); });
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
