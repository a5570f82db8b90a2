// Measures attention on one thread, for every instruction set that runs here and every KV type. There are two kinds of benchmarks:
//   - The kernels only. A KV head has 64 elements and 8 query heads; pages have 32 tokens. So that the keys and values are read from memory
//     and not from a core's cache, as in decode, a benchmark alternates between four layers of four KV heads.
//   - One layer's attention in a decode step of 32 sequences with the same prompt of 4,096 tokens. In one benchmark the sequences share the
//     prompt's pages, in the other each sequence has a copy of the pages. (Use --benchmark_enable_random_interleaving to run the two by turns.)
#include <benchmark/benchmark.h>

#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tessera/extend/kv/records.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/instruction_sets.hpp"

using namespace tessera;

namespace {

constexpr std::size_t kLayers = 4, kHeads = 4, kGroupHeads = 8, kDim = 64;
const std::span<const DType> kTypes = kv_types();

std::vector<float> random_values(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

KvCache filled(DType dtype, std::uint64_t tokens) {
  const std::vector<KvLayerShape> shapes(kLayers, KvLayerShape{kHeads, kDim, kDim});
  auto cache = KvCache::contiguous(*make_kv_layout(shapes, dtype, 32), {.capacity = tokens}, system_memory());
  const auto values = random_values(997 * kDim);
  if (!cache->reserve(tokens)) return *std::move(cache);
  for (std::uint64_t i = 0; i < kLayers * kHeads * tokens; ++i) {
    for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
      const kv::HeadPart of{.layer = i % kLayers, .part = part, .head = i / kLayers % kHeads};
      kv::encode(cache->view(), of, i / (kLayers * kHeads), values.data() + i % 997 * kDim);
    }
  }
  return *std::move(cache);
}

// Measures the attention of rows [first, last), all heads of one layer.
void attention(benchmark::State& state, const cpu::Attend& kernel, DType dtype, std::uint64_t first,
               std::uint64_t last) {
  const KvCache cache = filled(dtype, last);
  const std::size_t columns = kHeads * kGroupHeads * kDim, rows = cpu::attend_rows(kernel.queries, kGroupHeads);
  const auto q = random_values((last - first) * columns);
  std::vector<float> out(q.size()), scratch(cpu::attend_scratch(kernel.queries, kDim, kDim).bytes / sizeof(float) + 16);
  std::size_t layer = 0;
  for (auto _ : state) {
    const backend::AttentionShape shape{.layer = static_cast<std::uint32_t>(layer++ % kLayers), .n_heads = kHeads * kGroupHeads, .scale = 0.125f};
    for (std::size_t head = 0; head < kHeads; ++head) {
      for (std::uint64_t position = first; position < last; position += rows) {
        cpu::AttendJob job = cpu::attend_job(cache.view(), shape, head);
        job.rows = std::min<std::uint64_t>(rows, last - position);
        job.position = position;
        job.q = q.data() + (position - first) * columns + head * kGroupHeads * kDim;
        job.out = out.data() + (position - first) * columns + head * kGroupHeads * kDim;
        job.q_stride = job.out_stride = columns;
        job.last_chunk = cpu::chunks_of(position, position + job.rows, 0).last;
        job.scratch = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
        kernel.run(job);
      }
    }
    benchmark::DoNotOptimize(out.data());
  }
  const double runs = static_cast<double>(state.iterations());
  const double pairs = static_cast<double>(last * (last + 1) - first * (first + 1)) / 2 * kHeads * kGroupHeads;
  const auto rate = [&](double amount) { return benchmark::Counter(amount * runs, benchmark::Counter::kIsRate); };
  state.counters["FLOP/s"] = rate(pairs * 4 * kDim);
  state.counters["KV bytes/s"] = rate(static_cast<double>(cache.layout().bytes_per_token() * last) / kLayers);
}

struct OneThread final : Executor {
  [[nodiscard]] std::size_t concurrency() const noexcept override { return 1; }
  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    for (std::size_t i = 0; i < n; ++i) task(context, i);
  }
};

struct Heads {
  const char* name;
  std::uint32_t kv_heads, group, dim;
};

enum class Prompt { shared, copied };

// One layer's attention in a decode step of kSequences sequences.
class Samples {
 public:
  static constexpr std::uint32_t kSequences = 32;
  static constexpr std::uint64_t kPrompt = 4096, kTokens = kPrompt + 20;

  Samples(InstructionSet set, DType dtype, const Heads& of, Prompt prompt)
      : heads_(of), cpu_(threads_, system_memory(), set, Numerics::automatic), layout_(*make_kv_layout(layers(of), dtype)),
        queries_(random_values(std::size_t{kSequences} * of.kv_heads * of.group * of.dim)) {
    const std::uint64_t columns = std::uint64_t{of.kv_heads} * of.group * of.dim;
    const backend::MatrixShape one{DType::f32, 1, columns};
    (void)cpu_.reserve_weights(cpu_.matrix_bytes(one), cpu_.staging_bytes(one));
    table_ = *cpu_.add_matrix(one, [](std::uint64_t, std::uint64_t, std::span<std::byte>) { return Status(); });
    backend::WorkspaceShape shape{.rows = kSequences, .output_rows = 1, .max_heads = of.kv_heads * of.group,
                                  .max_group = of.group, .max_key_dim = of.dim, .max_value_dim = of.dim};
    shape.columns[static_cast<std::size_t>(Act::q)] = shape.columns[static_cast<std::size_t>(Act::attn)] = columns;
    (void)cpu_.reserve_workspace(shape);
    for (std::uint32_t i = 0; i < kSequences; ++i) {
      caches_.push_back(filled_layer(kTokens));
      for (std::uint64_t page = 0; page < layout_.pages(kTokens); ++page) {
        const bool is_shared = prompt == Prompt::shared && page < kPrompt / layout_.page_tokens;
        tables_[i].push_back(caches_[is_shared ? 0 : i].view().pages[0][page]);
      }
      groups_[i] = tables_[i].data();
      views_.push_back({&layout_, &groups_[i]});
      rows_.push_back({.embedding = queries_.data() + i * columns, .sequence = i, .position = kTokens - 1});
    }
    (void)cpu_.begin({.rows = rows_, .sequences = views_, .ropes = {}});
    (void)cpu_.embed(*table_, 1.0f, Act::q);
  }

  void attend() {
    (void)cpu_.attention({.layer = 0, .n_heads = heads_.kv_heads * heads_.group, .scale = 0.125f}, Act::q, Act::attn);
  }

 private:
  using Act = backend::Act;
  static std::vector<KvLayerShape> layers(const Heads& of) { return {{of.kv_heads, of.dim, of.dim}}; }
  KvCache filled_layer(std::uint64_t tokens) {
    auto cache = KvCache::contiguous(layout_, {.capacity = tokens}, system_memory());
    const auto values = random_values(997 * heads_.dim);
    if (!cache->reserve(tokens)) return *std::move(cache);
    for (std::uint64_t i = 0; i < heads_.kv_heads * tokens; ++i) {
      for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
        kv::encode(cache->view(), {.layer = 0, .part = part, .head = i % heads_.kv_heads}, i / heads_.kv_heads,
                   values.data() + i % 997 * heads_.dim);
      }
    }
    return *std::move(cache);
  }

  Heads heads_;
  OneThread threads_;
  cpu::CpuBackend cpu_;
  KvLayout layout_;
  std::vector<float> queries_;
  const backend::Matrix* table_ = nullptr;
  std::deque<KvCache> caches_;
  std::vector<std::byte*> tables_[kSequences];
  std::byte* const* groups_[kSequences];
  std::vector<KvView> views_;
  std::vector<backend::RowTable> rows_;
};

constexpr Heads kSampleHeads[] = {{"8 x 1 x 64", 8, 1, 64}, {"2 x 4 x 128", 2, 4, 128}, {"4 x 8 x 64", 4, 8, 64}};

void add_samples(InstructionSet set, DType dtype) {
  for (const Heads& heads : kSampleHeads) {
    for (const Prompt prompt : {Prompt::shared, Prompt::copied}) {
      const std::string name = std::string(prompt == Prompt::shared ? "32 samples, shared/" : "32 samples, copied/") +
                               std::string(to_string(set)) + "/" + std::string(to_string(dtype)) + "/" + heads.name;
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        Samples samples(set, dtype, heads, prompt);
        for (auto _ : state) samples.attend();
      })->Unit(benchmark::kMillisecond);
    }
  }
}

void add_all() {
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    const cpu::Kernels kernels = cpu::kernels_of(support.set);
    for (const DType dtype : kTypes) {
      const cpu::KvType type = cpu::kv_type_of(dtype);
      const bool has_pairs = kernels.attend(cpu::Family::bf16_pairs, type).run != nullptr;
      const cpu::Family family = dtype == DType::f32 || (dtype == DType::f16 && !kernels.has_tiles) ? cpu::Family::f32
                                 : dtype == DType::f16 ? cpu::Family::bf16x3
                                 : has_pairs && !kernels.has_tiles ? cpu::Family::bf16_pairs : cpu::Family::bf16;
      const cpu::Attend kernel = kernels.attend(family, type);
      const std::string name = std::string(to_string(support.set)) + "/" + std::string(to_string(dtype));
      const auto add = [&](const char* what, std::uint64_t first, std::uint64_t last) {
        benchmark::RegisterBenchmark((what + name).c_str(), attention, kernel, dtype, first, last)
            ->Unit(last - first > 1 ? benchmark::kMillisecond : benchmark::kMicrosecond);
      };
      add("prefill 2048/", 0, 2048);
      add("decode at 8k/", 8191, 8192);
      if (support.set != InstructionSet::baseline) add("decode at 32k/", 32767, 32768);
      add("decode at 144/", 143, 144);  // so short that keys and values are in the CPU's caches
      if (support.set != InstructionSet::baseline) add_samples(support.set, dtype);
    }
  }
}

[[maybe_unused]] const bool kAdded = (add_all(), true);

}  // namespace
