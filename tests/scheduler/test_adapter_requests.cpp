// Requests with adapters: many different ones in one step, each as if it ran alone; adapters that are dropped while they are used; and
// adapters that begin at their invocation.
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include <unistd.h>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/made_adapter.hpp"

#include "catch.hpp"

namespace test_adapter_requests {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Rig {
  explicit Rig(std::size_t n, EngineOptions options = {}) : file(must(ModelFile::open(golden_dir() / "llama-long.gguf"))) {
    options.context = 256;
    options.kv.page_tokens = 16;
    options.threads = 2;
    engine = must(Engine::load(file, options));
    for (std::uint32_t i = 0; i < n; ++i) adapters.push_back(load(i));
  }
  [[nodiscard]] Adapter load(std::uint32_t i, std::vector<std::uint32_t> invocation = {}) const {
    // An adapter with an invocation changes no table of embeddings.
    const bool takes_all = invocation.empty();
    const MadeAdapter how{.rank = 1u << (i % 5), .dtype = i % 2 == 0 ? DType::f16 : DType::bf16, .alpha = 3.0f, .seed = i + 1, .size = 0.8f,
                          .takes = [=](std::string_view tensor) { return takes_all || tensor.starts_with("blk."); },
                          .invocation = std::move(invocation)};
    return must(engine.adapter(folder.write("adapter" + std::to_string(i), file, how)));
  }

  AdapterFolder folder;
  ModelFile file;
  Engine engine;
  std::vector<Adapter> adapters;
};

std::vector<Token> answer(RequestHandle& handle) {
  std::vector<Token> tokens;
  while (auto piece = handle.next()) tokens.push_back(piece->piece.token);
  must(handle.status());
  return tokens;
}

struct Wish {
  std::vector<Token> prompt;
  std::vector<AdapterUse> adapters = {};
  std::uint32_t seed = 0;
  std::size_t tokens = 12;

  [[nodiscard]] Sampler sampler() const { return sampling::chain().temperature(0.9f).seed(seed).build(); }
  [[nodiscard]] Request request() const {
    return {.prompt = prompt, .sampler = sampler(), .generate = options(), .adapters = adapters};
  }
  [[nodiscard]] GenerateOptions options() const { return {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore}; }
};

Wish wish_of(std::uint32_t i, std::vector<AdapterUse> adapters) {
  Wish wish{.prompt = {}, .adapters = std::move(adapters), .seed = i};
  for (std::uint32_t k = 0; k < 20 + i % 13; ++k) wish.prompt.push_back(static_cast<Token>((i / 16 + 5 * k) % 90));
  return wish;
}

std::vector<Token> alone(const Engine& engine, const Wish& wish) {
  Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = wish.adapters}));
  must(session.append(wish.prompt));
  Sampler sampler = wish.sampler();
  std::vector<Token> tokens;
  for (const auto& piece : session.generate(sampler, wish.options())) {
    if (!piece) FAIL(piece.error().text());
    tokens.push_back(piece->token);
  }
  return tokens;
}

}  // namespace

TEST_CASE("64 requests over 16 adapters and none give the tokens that each gives alone", "[adapters]") {
  const Rig rig(16);
  std::mt19937 random(7);
  std::vector<std::vector<AdapterUse>> sets;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::vector<AdapterUse>& set = sets.emplace_back();
    if (i % 5 == 0) continue;
    set.push_back({rig.adapters[random() % 16], 0.25f * static_cast<float>(1 + random() % 8)});
    if (i % 7 == 0) set.push_back({rig.adapters[random() % 16], -0.5f, random() % 25});
  }
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 96, .max_running = 24}}));
  std::vector<RequestHandle> handles;
  for (std::uint32_t i = 0; i < 64; ++i) handles.push_back(must(scheduler.submit(wish_of(i, sets[i]).request())));
  std::set<std::vector<Token>> different;
  for (std::uint32_t i = 0; i < 64; ++i) {
    INFO(i);
    const std::vector<Token> found = answer(handles[i]);
    CHECK(found == alone(rig.engine, wish_of(i, sets[i])));
    different.insert(found);
  }
  CHECK(different.size() > 32);  // the adapters do something
}

TEST_CASE("requests with adapters that are preempted give the tokens that each gives alone", "[adapters]") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("tessera-adapter-preemption-" + std::to_string(::getpid()));
  for (const bool suspends : {false, true}) {  // pages go to a file, or are computed again
    EngineOptions options;
    options.kv.prefix = PrefixReuse::off;
    {
      const Rig roomy(0);
      options.kv_budget = 9 * 16 * roomy.engine.plan().kv_layout.bytes_per_token();  // a request begins with two pages and ends with six
    }
    if (suspends) {
      options.kv_file = file;
      options.kv_file_bytes = std::uint64_t{1} << 24;
    }
    const Rig rig(6, options);
    Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 64, .headroom = 0.0}}));
    std::vector<Wish> wishes;
    for (std::uint32_t i = 0; i < 24; ++i) {
      wishes.push_back(wish_of(i, i % 4 == 0 ? std::vector<AdapterUse>{} : std::vector<AdapterUse>{{rig.adapters[i % 6], 0.5f * static_cast<float>(1 + i % 3)}}));
    }
    for (Wish& wish : wishes) wish.tokens = 60;
    std::vector<RequestHandle> handles;
    for (const Wish& wish : wishes) handles.push_back(must(scheduler.submit(wish.request())));
    std::vector<std::vector<Token>> found;
    for (RequestHandle& handle : handles) found.push_back(answer(handle));
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      INFO(i << (suspends ? ", suspended" : ", computed again"));
      CHECK(found[i] == alone(rig.engine, wishes[i]));
    }
    CHECK((suspends ? scheduler.figures().suspended : scheduler.figures().recomputed) > 0);
  }
}

TEST_CASE("An adapter that is dropped while requests use it stays until they end", "[adapters]") {
  Rig rig(4);
  std::vector<std::vector<Token>> expected;
  for (std::uint32_t i = 0; i < 4; ++i) expected.push_back(alone(rig.engine, wish_of(i, {{rig.adapters[i]}})));
  Scheduler scheduler = must(Scheduler::create(rig.engine, {}));
  std::vector<RequestHandle> handles;
  for (std::uint32_t i = 0; i < 4; ++i) handles.push_back(must(scheduler.submit(wish_of(i, {{rig.adapters[i]}}).request())));
  must(scheduler.step());
  rig.adapters.clear();
  const Adapter other = rig.load(9);  // its memory is not that of the dropped ones
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(answer(handles[i]) == expected[i]);
}

TEST_CASE("A request begins an adapter at the last invocation in its prompt", "[adapters]") {
  const Rig rig(0);
  const Adapter adapter = rig.load(3, {40, 41});
  REQUIRE(adapter.invocation().size() == 2);
  Wish wish = wish_of(1, {});
  wish.prompt = std::vector<Token>(60, 5);
  wish.prompt[10] = wish.prompt[37] = 40;
  wish.prompt[11] = wish.prompt[38] = 41;
  Wish plain = wish;
  const auto base = alone(rig.engine, plain);
  wish.adapters = {{adapter, 1.0f, 37}};
  const auto expected = alone(rig.engine, wish);
  CHECK(expected != base);
  wish.adapters = {{adapter}};
  CHECK(alone(rig.engine, wish) == expected);  // a session finds the invocation too
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 7}}));
  RequestHandle first = must(scheduler.submit(plain.request()));
  CHECK(answer(first) == base);
  RequestHandle second = must(scheduler.submit(wish.request()));
  CHECK(answer(second) == expected);
  CHECK(second.figures().reused_tokens == 32);  // the base's pages before the invocation
  plain.prompt[38] = plain.prompt[11] = wish.prompt[38] = wish.prompt[11] = 5;
  RequestHandle without = must(scheduler.submit(wish.request()));
  CHECK(answer(without) == alone(rig.engine, plain));
}

}  // namespace test_adapter_requests
