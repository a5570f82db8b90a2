// Measures large buffers: how long it takes to populate one, and how fast one is read from end to end, with huge pages and without.
#include <benchmark/benchmark.h>

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include <tessera/extend/core/memory.hpp>

namespace {

constexpr std::size_t kBytes = std::size_t{512} << 20;

std::uint64_t sum(const std::byte* data, std::size_t bytes) {
  const auto* values = reinterpret_cast<const std::uint64_t*>(data);
  std::uint64_t total[8] = {};
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) total[lane] += values[i + lane];
  }
  return total[0] + total[1] + total[2] + total[3] + total[4] + total[5] + total[6] + total[7];
}

void set_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBytes));
}

void populate(benchmark::State& state) {
  for (auto _ : state) {
    auto buffer = tessera::Buffer::allocate(tessera::system_memory(), kBytes, "a benchmark");
    if (!buffer) return state.SkipWithError("no memory");
  }
  set_bytes(state);
}

void read_buffer(benchmark::State& state) {
  auto buffer = tessera::Buffer::allocate(tessera::system_memory(), kBytes, "a benchmark");
  if (!buffer) return state.SkipWithError("no memory");
  for (auto _ : state) benchmark::DoNotOptimize(sum(buffer->data(), kBytes));
  set_bytes(state);
}

// Measures reading a buffer in pages of 4 KiB, from end to end.
void read_small_pages(benchmark::State& state) {
  void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return state.SkipWithError("no memory");
  madvise(base, kBytes, MADV_NOHUGEPAGE);
  std::memset(base, 0, kBytes);
  for (auto _ : state) benchmark::DoNotOptimize(sum(static_cast<const std::byte*>(base), kBytes));
  set_bytes(state);
  munmap(base, kBytes);
}

}  // namespace

BENCHMARK(populate)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(read_buffer)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(read_small_pages)->Unit(benchmark::kMillisecond)->UseRealTime();
