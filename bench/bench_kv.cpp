// Records of the KV cache by themselves, on one thread: what saving, restoring and converting a session move. Counters say
// how many record bytes a second that is.
#include <benchmark/benchmark.h>

#include <vector>

#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/records.hpp>

using namespace tessera;

namespace {

constexpr std::uint64_t kTokens = 1024;

// state.range: KV type, part, page size. One head of 128.
template <class Move>
void move_records(benchmark::State& state, Move&& move) {
  const KvLayerShape shapes[] = {{1, 128, 128}};
  const auto layout = make_kv_layout(shapes, static_cast<DType>(state.range(0)), static_cast<std::uint32_t>(state.range(2)));
  auto cache = KvCache::contiguous(*layout, {.capacity = kTokens}, system_memory());
  if (!cache->reserve(kTokens)) return state.SkipWithError("no memory");
  cache->commit(kTokens);
  const kv::HeadPart of{.layer = 0, .part = static_cast<kv::Part>(state.range(1)), .head = 0};
  std::vector<std::byte> records(kTokens * kv::record_bytes(*layout, of));
  for (auto _ : state) {
    move(cache->view(), of, records);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(to_string(layout->dtype)) + (of.part == kv::Part::key ? " keys" : " values"));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * records.size()));
}

void read_records(benchmark::State& state) {
  move_records(state, [](const KvView& kv, const kv::HeadPart& of, std::vector<std::byte>& records) {
    kv::read_records(kv, of, 0, kTokens, records.data());
  });
}

void write_records(benchmark::State& state) {
  move_records(state, [](const KvView& kv, const kv::HeadPart& of, std::vector<std::byte>& records) {
    kv::write_records(kv, of, 0, kTokens, records.data());
  });
}

void arguments(benchmark::internal::Benchmark* bench) {
  for (const DType dtype : {DType::f32, DType::f16, DType::int8}) {
    for (const int part : {0, 1}) {
      for (const int page : {16, 32, 64}) bench->Args({static_cast<int>(dtype), part, page});
    }
  }
}

BENCHMARK(read_records)->Apply(arguments);
BENCHMARK(write_records)->Apply(arguments);

}  // namespace
