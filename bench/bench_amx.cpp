// Matrix products by tiles, one thread, called through the table as the backend does. Few rows: weights of 256 MB, so
// that they come from memory; `weights` is then the rate to hold against `read`. Many rows: `flop` counts.
#include <benchmark/benchmark.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <tessera/core/float16.hpp>

#include "cpu/kernels.hpp"

namespace tessera::cpu::amx {
void add_kernels(Kernels& kernels) noexcept;
}

using namespace tessera;
using namespace tessera::cpu;

namespace {

constexpr std::size_t kPages = std::size_t{2} << 20;
constexpr std::size_t kMemory = std::size_t{256} << 20;  // of weights that are to come from memory
constexpr std::size_t kTaskPanels = 32;

// Huge pages where the system gives them, as the library's weights have.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_((bytes + kPages - 1) / kPages * kPages + kPages) {
    base_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    at_ = base_ + (kPages - reinterpret_cast<std::uintptr_t>(base_) % kPages) % kPages;
    madvise(at_, bytes_ - kPages, MADV_HUGEPAGE);
  }
  ~Memory() { munmap(base_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return at_; }

 private:
  std::size_t bytes_;
  std::byte *base_, *at_;
};

const Kernels& table() {
  static const Kernels kernels = [] {
    Kernels made;
    if (syscall(SYS_arch_prctl, 0x1023, 18) == 0) amx::add_kernels(made);
    return made;
  }();
  return kernels;
}

// Any bytes, but with scales that are ordinary numbers.
void fill_weights(PackedForm form, std::size_t bytes, std::byte* to) {
  const FormLayout layout = form_layout(form);
  std::mt19937 random(1);
  std::vector<std::byte> tile(layout.tile_bytes);
  for (auto& byte : tile) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; layout.bits == 0 && i < tile.size(); i += 2) {
    const auto value = static_cast<std::uint16_t>(0x3c00u | (random() & 0x80ffu));
    std::memcpy(tile.data() + i, &value, 2);
  }
  for (std::size_t n = 0; layout.bits != 0 && n < 16; ++n) {
    const std::uint16_t d = f32_to_f16(0.01f);
    std::memcpy(tile.data() + layout.d_at + 2 * n, &d, 2);
    if (layout.has_min) std::memcpy(tile.data() + layout.min_at + 2 * n, &d, 2);
  }
  for (std::size_t at = 0; at + tile.size() <= bytes; at += tile.size()) std::memcpy(to + at, tile.data(), tile.size());
}

// state.range: family, form, rows, inputs, outputs (0: as many as fill the memory).
void product(benchmark::State& state) {
  const auto family = static_cast<Family>(state.range(0));
  const auto form = static_cast<PackedForm>(state.range(1));
  const auto rows = static_cast<std::size_t>(state.range(2)), inputs = static_cast<std::size_t>(state.range(3));
  const Linear& linear = table().product(family, form).of(rows);
  if (linear.run == nullptr) return state.SkipWithError("not in the table");
  const std::size_t bytes = panel_bytes(form, inputs);
  const std::size_t panels =
      state.range(4) == 0 ? kMemory / bytes / 2 * 2 : static_cast<std::size_t>(state.range(4)) / kPanel;
  const InputForm input = input_form(family, form);
  const std::size_t stride = row_layout(input, inputs).bytes;
  const Memory weights(panels * bytes), x(rows * stride), scratch(linear.scratch_bytes + 1);
  fill_weights(form, panels * bytes, weights.data());
  std::mt19937 random(2);
  const RowLayout layout = row_layout(input, inputs);
  for (std::size_t i = 0; i < rows * stride; ++i) {
    x.data()[i] = layout.scales ? static_cast<std::byte>(random()) : static_cast<std::byte>(i % 2 ? 0x3d : random());
  }
  for (std::size_t r = 0; layout.scales && r < rows; ++r) {
    for (std::size_t at = layout.scales; at < layout.sums; at += 4) {
      const float scale = 0.01f;
      std::memcpy(x.data() + r * stride + at, &scale, 4);
    }
  }
  const std::size_t outputs = panels * kPanel;
  std::vector<float> out(rows * outputs);
  const std::size_t task = rows <= 32 ? std::size_t{256} : kTaskPanels;
  for (auto _ : state) {
    for (std::size_t row = 0; row < rows; row += linear.max_rows) {
      for (std::size_t panel = 0; panel < panels; panel += task) {
        LinearJob job;
        job.weights = weights.data() + panel * bytes;
        job.panel_bytes = bytes;
        job.panels = std::min(task, panels - panel);
        job.inputs = inputs;
        job.outputs = job.panels * kPanel;
        job.x = x.data() + row * stride;
        job.x_stride = stride;
        job.rows = std::min(linear.max_rows, rows - row);
        job.out = out.data() + row * outputs + panel * kPanel;
        job.out_stride = outputs;
        job.scratch = scratch.data();
        linear.run(job);
      }
    }
    benchmark::DoNotOptimize(out.data());
  }
  const auto n = static_cast<double>(state.iterations());
  state.SetLabel(linear.name);
  state.counters["weights"] = benchmark::Counter(n * static_cast<double>(panels * bytes), benchmark::Counter::kIsRate);
  state.counters["flop"] =
      benchmark::Counter(n * 2.0 * static_cast<double>(rows * inputs * outputs), benchmark::Counter::kIsRate);
}

[[gnu::target("avx512f")]] void read_all(benchmark::State& state) {
  const Memory memory(kMemory);
  std::memset(memory.data(), 1, kMemory);
  for (auto _ : state) {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t at = 0; at < kMemory; at += 256) {
      _mm_prefetch(reinterpret_cast<const char*>(memory.data() + at + 4096), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(memory.data() + at + 4160), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(memory.data() + at + 4224), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(memory.data() + at + 4288), _MM_HINT_T0);
      for (std::size_t i = 0; i < 256; i += 64) sum = _mm512_xor_si512(sum, _mm512_load_si512(memory.data() + at + i));
    }
    benchmark::DoNotOptimize(sum);
  }
  state.counters["read"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kMemory), benchmark::Counter::kIsRate);
}

constexpr auto kInt8 = static_cast<std::int64_t>(Family::int8), kBf16 = static_cast<std::int64_t>(Family::bf16),
               kBf16x3 = static_cast<std::int64_t>(Family::bf16x3);

constexpr std::int64_t form(PackedForm which) { return static_cast<std::int64_t>(which); }

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"family", "form", "rows", "k", "outputs"});
  const auto add = [&](std::int64_t family, PackedForm which) {
    for (const std::int64_t rows : {1, 8, 16, 32}) bench->Args({family, form(which), rows, 2048, 0});
    for (const std::int64_t rows : {64, 128, 512}) bench->Args({family, form(which), rows, 2048, 2048});
    bench->Args({family, form(which), 512, 5632, 2048});
  };
  for (const auto which :
       {PackedForm::block32_4, PackedForm::block32_4_min, PackedForm::block32_5, PackedForm::block32_5_min,
        PackedForm::block32_8, PackedForm::block256_4, PackedForm::block256_5, PackedForm::block256_6}) {
    add(kInt8, which);
  }
  for (const auto which : {PackedForm::bf16, PackedForm::block32_4, PackedForm::block32_8, PackedForm::block256_4,
                           PackedForm::block256_6}) {
    add(kBf16, which);
  }
  add(kBf16x3, PackedForm::f16);
}

}  // namespace

BENCHMARK(read_all);
BENCHMARK(product)->Apply(arguments);
