// Attention kernels on one thread: every instruction set that runs here, every KV type. Shape: 8 query heads to a KV
// head of 64, pages of 32 tokens; four layers of four heads, so that what decode reads is in no cache of a core.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/records.hpp>

#include "cpu/attention_plan.hpp"
#include "cpu/instruction_sets.hpp"

using namespace tessera;

namespace {

constexpr std::size_t kLayers = 4, kHeads = 4, kGroupHeads = 8, kDim = 64;
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8};

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
    for (const kv::Part part : {kv::Part::key, kv::Part::value}) {
      const kv::HeadPart of{.layer = i % kLayers, .part = part, .head = i / kLayers % kHeads};
      kv::encode(cache->view(), of, i / (kLayers * kHeads), values.data() + i % 997 * kDim);
    }
  }
  return *std::move(cache);
}

// Rows [first, last) of all heads of a layer.
void attention(benchmark::State& state, const cpu::Attend& kernel, DType dtype, std::uint64_t first,
               std::uint64_t last) {
  const KvCache cache = filled(dtype, last);
  const std::size_t columns = kHeads * kGroupHeads * kDim, rows = cpu::attend_rows(kernel.queries, kGroupHeads);
  const auto q = random_values((last - first) * columns);
  std::vector<float> out(q.size()), scratch(cpu::attend_scratch(kernel.queries, kDim, kDim).bytes / sizeof(float) + 16);
  std::size_t layer = 0;
  for (auto _ : state) {
    const backend::AttentionShape shape{static_cast<std::uint32_t>(layer++ % kLayers), kHeads * kGroupHeads, 0, 0.125f};
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
      add("decode at 144/", 143, 144);  // in the caches
    }
  }
}

[[maybe_unused]] const bool kAdded = (add_all(), true);

}  // namespace
