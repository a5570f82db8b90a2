// Measures the matrix products of each instruction set on one thread. A benchmark is called `linear/SET/FAMILY/FORM/ROWS` (FORM: the packed
// form of the weights; ROWS: rows of activations). With few rows, the matrix is larger than the caches, so that reading it limits the
// speed; compare with the benchmark `read`, a plain loop that reads as many bytes. With many rows, the matrix has 2048 x 2048 weights.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/instruction_sets.hpp"

using namespace tessera;
using cpu::Family;
using cpu::PackedForm;

namespace {

constexpr std::size_t kInputs = 2048, kOutputs = 2048;
constexpr std::size_t kStreamed = std::size_t{384} << 20;

constexpr const char* kForms[] = {"F32",  "F16",  "BF16", "Q4_0", "Q4_1", "Q5_0",
                                  "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K",
                                  "IQ4_NL", "MXFP4", "NVFP4", "IQ4_XS", "Q3_K", "Q2_K", "IQ3_S", "IQ3_XXS",
                                  "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0"};
static_assert(std::size(kForms) == formats::kPackedForms);
constexpr const char* kFamilies[] = {"reference", "f32", "int8", "bf16", "bf16x3", "bf16-pairs"};
static_assert(std::size(kFamilies) == cpu::kFamilies);

// Returns random bytes that are usable as weights in every packed form. Read as F16 or F32 they are numbers below 2 and never denormal,
// because denormals would slow the arithmetic down. The bytes lie in huge pages if there are any.
const std::byte* weights() {
  static std::byte* const bytes = [] {
    void* mapped = mmap(nullptr, kStreamed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(mapped, kStreamed, MADV_HUGEPAGE);
    std::mt19937 random(1);
    for (std::size_t i = 0; i < kStreamed; i += 4) {
      const std::uint32_t word = (static_cast<std::uint32_t>(random()) & 0x07ff07ffu) | 0x38003800u;
      std::memcpy(static_cast<std::byte*>(mapped) + i, &word, 4);
    }
    return static_cast<std::byte*>(mapped);
  }();
  return bytes;
}

void read(benchmark::State& state) {
  const std::byte* from = weights();
  using Vec = std::uint64_t __attribute__((vector_size(16)));
  for (auto _ : state) {
    Vec sum[4] = {};
    for (std::size_t i = 0; i < kStreamed; i += 64) {
      __builtin_prefetch(from + i + 4096);
      for (std::size_t j = 0; j < 4; ++j) sum[j] += *reinterpret_cast<const Vec*>(from + i + 16 * j);
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kStreamed));
}

void linear(benchmark::State& state, const cpu::Kernels& kernels, Family family, PackedForm form, std::size_t rows) {
  const cpu::Linear& kernel = kernels.product(family, form).of(rows);
  const std::size_t panel_bytes = cpu::panel_bytes(form, kInputs), width = cpu::panel_outputs(form);
  const std::size_t panels = rows <= 16 ? kStreamed / panel_bytes : kOutputs / width;
  const cpu::InputForm input = cpu::input_form(family, form);
  const std::size_t stride = cpu::row_layout(input, kInputs).bytes;
  const cpu::RowCut cut(kernel, rows);
  const std::size_t x_bytes = (rows + cut.group - 1) * stride;
  std::vector<std::byte> memory(x_bytes + kernel.scratch_bytes + 128);
  auto* x = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  std::mt19937 random(1);
  std::vector<float> row(kInputs), out(rows * panels * width);
  for (float& value : row) value = std::normal_distribution<float>()(random);
  for (std::size_t r = 0; r < rows; ++r) {
    kernels.preparation(input)(row.data(), kInputs, x + cpu::group_at(r, cut.group, stride), cut.group);
  }
  const std::size_t task_panels = std::max(rows < 16 ? panels / 64 : 8, kernel.panels) / kernel.panels * kernel.panels;
  for (auto _ : state) {
    for (std::size_t r = 0; r < rows; r += cut.task) {
      for (std::size_t panel = 0; panel < panels; panel += task_panels) {
        cpu::LinearJob job;
        job.weights = weights() + panel * panel_bytes;
        job.panel_bytes = panel_bytes;
        job.panels = std::min(task_panels, panels - panel);
        job.inputs = kInputs;
        job.outputs = job.panels * width;
        job.x = x + r * stride;
        job.x_stride = stride;
        job.group = cut.group;
        job.rows = std::min(cut.task, rows - r);
        job.out_stride = panels * width;
        job.out = out.data() + r * job.out_stride + panel * width;
        job.scratch = x + x_bytes;
        job.ahead = kernels.ahead;
        kernel.run(job);
      }
    }
    benchmark::ClobberMemory();
  }
  const auto n = static_cast<double>(state.iterations());
  const auto rate = [&](double amount) { return benchmark::Counter(n * amount, benchmark::Counter::kIsRate); };
  state.counters["weight_bytes"] = rate(static_cast<double>(panels * panel_bytes));
  state.counters["op"] = rate(2.0 * static_cast<double>(rows * kInputs * panels * width));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("read", read)->Unit(benchmark::kMillisecond);
  std::vector<std::pair<std::string, cpu::Kernels>> tables;
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (cpu::claim_set(support.set)) tables.emplace_back(to_string(support.set), cpu::kernels_of(support.set));
  }
  for (const auto& [set, kernels] : tables) {
    for (std::size_t family = 0; family < cpu::kFamilies; ++family) {
      for (std::size_t form = 0; form < formats::kPackedForms; ++form) {
        const auto f = static_cast<Family>(family);
        const auto p = static_cast<PackedForm>(form);
        if (kernels.product(f, p).few.run == nullptr) continue;
        for (const std::size_t rows : {1, 2, 4, 8, 16, 128, 512}) {
          std::string name = "linear/";
          name.append(set).append("/").append(kFamilies[family]).append("/").append(kForms[form]).append("/").append(
              std::to_string(rows));
          benchmark::RegisterBenchmark(name.c_str(), [&kernels = kernels, f, p, rows](benchmark::State& state) {
            linear(state, kernels, f, p, rows);
          })->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
