// Measures the KV cache on one thread: writing tokens, attention over contiguous and paged caches, forks, lookups in the prefix index,
// records, and saving and restoring whole sessions. A layer has 8 query heads and 2 KV heads of 64 elements.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "cpu/attention/reference_attention.hpp"
#include "cpu/attention/write_kv.hpp"
#include "kv/codecs.hpp"

using namespace tessera;

namespace {

constexpr std::size_t kKvHeads = 2, kGroup = 4, kDim = 64, kLayers = 4;
const std::span<const DType> kTypes = kv_types();

std::vector<float> random_values(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

KvLayout layout_of(DType dtype, std::uint32_t page_tokens) {
  const std::vector<KvLayerShape> shapes(kLayers, KvLayerShape{kKvHeads, kDim, kDim});
  return *make_kv_layout(shapes, dtype, page_tokens);
}

void write_tokens(KvCache& cache, std::uint64_t n, const std::vector<float>& values) {
  const std::uint64_t end = cache.length() + n;
  if (!cache.reserve(end)) return;
  for (std::uint64_t position = cache.length(); position < end; ++position) {
    const float* row = values.data() + position % (values.size() / kDim) * kDim;
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (std::size_t head = 0; head < kKvHeads; ++head) cpu::write_kv(cache.view(), layer, head, position, row, row);
    }
  }
  cache.commit(end);
}

// Two caches with the same contents: a contiguous one, and a paged one, whose pages lie scattered among the pages of three other sequences.
struct Pair {
  Pair(DType dtype, std::uint32_t page_tokens, std::uint64_t context)
      : layout(layout_of(dtype, page_tokens)),
        contiguous(*KvCache::contiguous(layout, {.capacity = context}, system_memory())),
        paged(*KvCache::paged(layout, {.capacity = context}, pools)) {
    const auto values = random_values(997 * kDim);
    std::vector<KvCache> others;
    for (int i = 0; i < 3; ++i) others.push_back(*KvCache::paged(layout, {.capacity = context}, pools));
    write_tokens(contiguous, context, values);
    while (paged.length() < context) {
      write_tokens(paged, std::min<std::uint64_t>(page_tokens, context - paged.length()), values);
      for (KvCache& other : others) (void)other.reserve(paged.length()), other.commit(paged.length());
    }
  }
  KvPools pools = *KvPools::create({});
  KvLayout layout;
  KvCache contiguous, paged;
};

void attend_once(const KvCache& cache, const std::vector<float>& q, std::vector<float>& out, std::vector<float>& scratch) {
  for (std::size_t head = 0; head < kKvHeads; ++head) {
    cpu::attend_reference(cache.view(), {.layer = 1, .n_heads = kKvHeads * kGroup, .window = 0, .scale = 0.125f}, head,
                cache.length() - 1, cache.length(), q.data() + head * kGroup * kDim, out.data() + head * kGroup * kDim, scratch.data());
  }
  benchmark::DoNotOptimize(out.data());
}

// Measures attention over the contiguous and the paged cache of a Pair by turns, at least 30 times each. The counter `ratio` is the median
// of (paged time / contiguous time). The benchmark's arguments, state.range(0) to (2): KV type, tokens of a page, tokens of the context.
void attention(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  const auto context = static_cast<std::uint64_t>(state.range(2));
  Pair pair(dtype, static_cast<std::uint32_t>(state.range(1)), context);
  const auto q = random_values(kKvHeads * kGroup * kDim);
  std::vector<float> out(q.size()), scratch(cpu::reference_attention_floats(kGroup, kDim, kDim));
  const auto repeats = static_cast<int>(std::max<std::uint64_t>(1, 8192 / context));
  const auto seconds = [&](const KvCache& cache) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) attend_once(cache, q, out, scratch);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
  };
  (void)seconds(pair.contiguous), (void)seconds(pair.paged);
  std::vector<double> ratios, contiguous;
  for (auto _ : state) {
    // The cache that is measured first alternates too.
    const bool first = ratios.size() % 2 == 0;
    const double a = seconds(first ? pair.contiguous : pair.paged);
    const double b = seconds(first ? pair.paged : pair.contiguous);
    contiguous.push_back(first ? a : b);
    ratios.push_back(first ? b / a : a / b);
    state.SetIterationTime(first ? b : a);
  }
  std::ranges::sort(ratios);
  std::ranges::sort(contiguous);
  state.SetLabel(std::string(to_string(dtype)));
  state.counters["ratio"] = ratios[ratios.size() / 2];
  state.counters["contiguous_us"] = contiguous[contiguous.size() / 2] * 1e6;
  state.counters["pairs"] = static_cast<double>(ratios.size());
}

// Measures how many tokens a second are written to a cache of four layers, with reserve() and commit() for each token. The benchmark's
// arguments: state.range(0) is the KV type; state.range(1) is 1 for a paged cache, 0 for a contiguous one.
void append(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  constexpr std::uint64_t kContext = 4096;
  const KvPools pools = *KvPools::create({.keep = std::uint64_t{1} << 30});
  const KvLayout layout = layout_of(dtype, 32);
  const auto values = random_values(997 * kDim);
  auto cache = state.range(1) != 0 ? KvCache::paged(layout, {.capacity = kContext}, pools)
                                   : KvCache::contiguous(layout, {.capacity = kContext}, system_memory());
  for (auto _ : state) {
    if (cache->length() == kContext) cache->clear();
    write_tokens(*cache, 1, values);
  }
  state.SetLabel(std::string(to_string(dtype)) + (state.range(1) != 0 ? " paged" : " contiguous"));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Measures making and destroying a fork. Argument (state.range): tokens of the cache.
void fork(benchmark::State& state) {
  const auto tokens = static_cast<std::uint64_t>(state.range(0));
  const KvPools pools = *KvPools::create({});
  auto cache = KvCache::paged(layout_of(DType::f16, 32), {.capacity = tokens + 64}, pools);
  write_tokens(*cache, tokens, random_values(997 * kDim));
  for (auto _ : state) {
    auto copy = cache->fork();
    benchmark::DoNotOptimize(copy);
  }
}

// Measures the first token that a fork of a cache of 1,000 tokens writes, for which a shared page is copied.
void fork_and_write(benchmark::State& state) {
  const KvPools pools = *KvPools::create({.keep = std::uint64_t{1} << 30});
  auto cache = KvCache::paged(layout_of(DType::f16, 32), {.capacity = 1064}, pools);
  const auto values = random_values(997 * kDim);
  write_tokens(*cache, 1000, values);
  for (auto _ : state) {
    auto copy = cache->fork();
    write_tokens(*copy, 1, values);
  }
}

// Measures lookups of prompts in the prefix index. Each prompt has 100 pages of 32 tokens, and half of these pages are in the index. The
// benchmark's argument state.range(0) is the number of pages in the index.
void prefix_lookup(benchmark::State& state) {
  constexpr std::uint64_t kPages = 100, kTokens = kPages * 32;
  const auto prompts = static_cast<std::uint32_t>(static_cast<std::uint64_t>(state.range(0)) / kPages);
  const KvLayerShape shape[] = {{1, 1, 1}};
  const KvLayout layout = *make_kv_layout(shape, DType::f16, 32);
  const KvPools pools = *KvPools::create({.keep = std::uint64_t{1} << 32});
  const auto prompt = [](std::uint32_t i) {
    std::mt19937 random(i);
    std::vector<Token> tokens(kTokens);
    for (Token& token : tokens) token = static_cast<Token>(random() % 128000);
    return tokens;
  };
  const KvCacheOptions options{.capacity = kTokens, .prefix_identity = "model"};
  for (std::uint32_t i = 0; i < prompts; ++i) {
    auto cache = KvCache::paged(layout, options, pools);
    if (!cache->reserve(kTokens)) return state.SkipWithError("no memory");
    cache->commit(kTokens, prompt(i));
  }
  std::vector<std::vector<Token>> asked;
  for (std::uint32_t i = 0; i < 64; ++i) asked.push_back(prompt(i % 2 == 0 ? i * 37 % prompts : prompts + i));
  std::size_t next = 0;
  std::uint64_t found = 0;
  for (auto _ : state) {
    auto cache = KvCache::paged(layout, options, pools);
    found += cache->adopt(asked[next++ % asked.size()]);
  }
  state.counters["found"] = static_cast<double>(found) / static_cast<double>(state.iterations() * kTokens);
  state.counters["pages"] = static_cast<double>(pools.figures().cached_bytes / layout.page_bytes());
}

// Measures copying records (keys and values in the form that files of saved sessions have) out of a cache or into one. The benchmark's
// arguments: state.range(0) is the KV type; state.range(1) is 1 for copies into the cache, 0 for copies out of it.
void records(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  constexpr std::uint64_t kTokens = 2048;
  const KvLayout layout = layout_of(dtype, 32);
  auto cache = KvCache::contiguous(layout, {.capacity = kTokens}, system_memory());
  write_tokens(*cache, kTokens, random_values(997 * kDim));
  std::vector<std::byte> buffer(kTokens * kv::record_bytes(dtype, kv::KeyOrValue::key, kDim));
  for (auto _ : state) {
    for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
      const kv::HeadPart of{.layer = 0, .part = part, .head = 1};
      if (state.range(1) == 0) kv::read_records(cache->view(), of, 0, kTokens, buffer.data());
      else kv::write_records(cache->view(), of, 0, kTokens, buffer.data());
    }
    benchmark::DoNotOptimize(buffer.data());
  }
  state.SetLabel(std::string(to_string(dtype)) + (state.range(1) == 0 ? " read" : " write"));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 2 * buffer.size()));
}

// Measures saving a whole session of the default model to memory, or restoring it, checksums included. The benchmark's arguments:
// state.range(0) is the KV type; state.range(1) is 1 to restore, 0 to save.
void sessions(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  const auto engine = Engine::load(TESSERA_MODEL, {.threads = 2});
  if (!engine) return state.SkipWithError("no model");
  auto session = engine->session({.kv = {.dtype = dtype, .prefix = PrefixReuse::off}});
  if (!session->append(std::vector<Token>(session->context() - 1, 5))) return state.SkipWithError("no tokens");
  std::vector<std::byte> saved;
  const auto sink = [&](std::span<const std::byte> bytes) -> Status {
    saved.insert(saved.end(), bytes.begin(), bytes.end());
    return {};
  };
  if (!session->save(sink)) return state.SkipWithError("not saved");
  for (auto _ : state) {
    if (state.range(1) == 0) {
      saved.clear();
      benchmark::DoNotOptimize(session->save(sink).has_value());
    } else {
      benchmark::DoNotOptimize(engine->restore(saved, {.kv = {.prefix = PrefixReuse::off}}).has_value());
    }
  }
  state.SetLabel(std::string(to_string(dtype)) + (state.range(1) == 0 ? " save" : " restore"));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * saved.size()));
}

std::vector<std::int64_t> types() {
  std::vector<std::int64_t> values;
  for (const DType type : kTypes) values.push_back(static_cast<std::int64_t>(type));
  return values;
}

}  // namespace

BENCHMARK(attention)
    ->ArgNames({"kv", "page", "context"})
    ->ArgsProduct({types(), {16, 32, 64}, {1024, 8192, 32768}})
    ->UseManualTime()
    ->Iterations(31)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(append)->ArgNames({"kv", "paged"})->ArgsProduct({types(), {0, 1}});
BENCHMARK(fork)->ArgName("tokens")->Arg(1000)->Arg(8192)->Arg(32768);
BENCHMARK(fork_and_write);
BENCHMARK(prefix_lookup)->ArgName("pages")->Arg(1000)->Arg(100000)->Unit(benchmark::kMicrosecond);
BENCHMARK(sessions)->ArgNames({"kv", "restore"})->ArgsProduct({types(), {0, 1}});
BENCHMARK(records)->ArgNames({"kv", "write"})->ArgsProduct({types(), {0, 1}});
