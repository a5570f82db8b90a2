// A model that is divided among ranks gives one rank's bits: for every architecture, format, KV type and chunking.
#include <map>

#include "ranks/divided.hpp"
#include "ranks/division.hpp"

namespace test_ranks {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("columns are divided without gaps") {
  for (const std::uint64_t total : {1u, 7u, 64u, 96u, 1000u}) {
    for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
      const detail::Division division(total, ranks);
      std::uint64_t next = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        CHECK(division.first(rank) == next);
        next += division.size(rank);
        for (std::uint64_t i = division.first(rank); i < next; ++i) CHECK(division.rank_of(i) == rank);
      }
      CHECK(next == total);
    }
  }
}

TEST_CASE("logits of every architecture are one rank's on two, three and four ranks") {
  std::map<std::uint32_t, std::size_t> computed;
  for (const GoldenCase& golden : golden_cases()) {
    const auto tokens = golden_tokens(golden.name);
    const Engine one = load_golden(golden.name);
    Session alone = must(one.session());
    const auto expected = all_logits(alone, tokens, tokens.size());
    for (const std::uint32_t ranks : {2u, 3u, 4u}) {
      const auto engine = load_divided(golden.name, divided(ranks));
      if (!engine) continue;
      ++computed[ranks];
      INFO(golden.name << " on " << ranks << " ranks");
      CHECK(engine->threads() == ranks);
      for (const std::size_t chunk : {tokens.size(), std::size_t{5}, std::size_t{1}}) {
        if (chunk == 1 && (ranks != 2 || computed[2] % 4 != 0)) continue;  // slow: a gather and a wait for each row
        INFO("chunks of " << chunk);
        Session session = must(engine->session({.kv = {.prefix = PrefixReuse::off}}));
        CHECK(same_bits(all_logits(session, tokens, chunk), expected));
        CHECK(checksums(session) == checksums(alone));
      }
    }
    const auto by_layers = load_divided(golden.name, divided(2, RankSplit::layers));
    if (!by_layers) continue;
    ++computed[0];
    INFO(golden.name << ", layers on two ranks");
    Session session = must(by_layers->session({.kv = {.prefix = PrefixReuse::off}}));
    CHECK(same_bits(all_logits(session, tokens, 5), expected));
    CHECK(checksums(session) == checksums(alone));
  }
  for (const std::uint32_t ranks : {0u, 2u, 3u, 4u}) CHECK(computed[ranks] >= golden_cases().size() * 9 / 10);
}

TEST_CASE("KV types, layouts and numerics do not show the ranks") {
  for (const std::string& name : {std::string("llama-gqa"), std::string("qwen3"), std::string("gpt-oss"), std::string("deepseek-v2-lite")}) {
    const auto tokens = golden_tokens(name);
    for (const Numerics numerics : {Numerics::automatic, Numerics::invariant, Numerics::reference}) {
      EngineOptions single;
      single.numerics = numerics;
      const Engine one = load_golden(name, single);
      EngineOptions options = divided(2);
      options.numerics = numerics;
      const Engine two = must(Engine::load(golden_dir() / (name + ".gguf"), options));
      for (const DType type : kv_types()) {
        if (!holds(one, type)) continue;
        for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
          INFO(name << ", " << to_string(numerics) << ", " << to_string(type) << ", kind " << static_cast<int>(kind));
          Session a = must(one.session({.kv = {.dtype = type, .kind = kind}})), b = must(two.session({.kv = {.dtype = type, .kind = kind}}));
          CHECK(same_bits(all_logits(a, tokens, 7), all_logits(b, tokens, 7)));
          CHECK(checksums(a) == checksums(b));
        }
      }
    }
  }
}

TEST_CASE("what ranks cannot do is an error that says so") {
  const auto path = golden_dir() / "llama-gqa.gguf";
  const auto error_of = [&](const EngineOptions& options) {
    const auto engine = Engine::load(path, options);
    REQUIRE_FALSE(engine);
    return engine.error();
  };
  CHECK(error_of(divided(0)).code() == ErrorCode::invalid_argument);
  CHECK(error_of(divided(65)).code() == ErrorCode::invalid_argument);
  EngineOptions with_executor = divided(2);
  class Alone final : public Executor {
    std::size_t concurrency() const noexcept override { return 1; }
    void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
      for (std::size_t i = 0; i < n; ++i) task(context, i);
    }
  };
  with_executor.executor = std::make_shared<Alone>();
  CHECK(error_of(with_executor).text().find("executor") != std::string::npos);
  EngineOptions on_gpu = divided(2);
  on_gpu.backend = BackendKind::cuda;
  CHECK(error_of(on_gpu).code() == ErrorCode::unsupported);
}

TEST_CASE("the plan of several ranks counts all of them") {
  const auto file = must(ModelFile::open(golden_dir() / "qwen3.gguf"));
  const Plan one = must(Engine::plan(file, {.threads = 1})), two = must(Engine::plan(file, divided(2)));
  CHECK(two.weights >= one.weights);
  CHECK(two.weights < one.weights * 5 / 4);
  CHECK(two.kv == one.kv);
  CHECK(two.workspace > one.workspace);
  const Engine engine = must(Engine::load(golden_dir() / "qwen3.gguf", divided(2)));
  CHECK(engine.plan().peak == two.peak);
}

}  // namespace test_ranks
