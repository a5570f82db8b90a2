// Adapters on several ranks give the bits that they give on one.
#include <atomic>
#include <thread>

#include "adapters/adapters.hpp"
#include "ranks/rank_threads.hpp"

namespace test_rank_adapters {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("adapters of PEFT give one rank's bits on several ranks") {
  std::size_t compared = 0, divided_by_layers = 0, over = 0;
  for (const AdapterGolden& golden : adapter_goldens()) {
    if (golden.name.find("embed-dora") != std::string::npos) continue;  // of one rank alone: merged only
    const auto tokens = read_tokens(golden_dir() / "adapters" / (golden.name + ".tokens.txt"));
    const auto logits_with = [&](EngineOptions options) -> std::vector<float> {
      options.tokenizer = TokenizerUse::none;
      auto engine = Engine::load(golden_folder(golden.base), options);
      if (!engine) {
        CHECK(engine.error().code() == ErrorCode::unsupported);
        return {};
      }
      std::vector<AdapterUse> uses;
      for (const auto& [name, scale] : golden.adapters) uses.push_back({.adapter = must(engine->adapter(adapter_folder(name))), .scale = scale});
      // Beside a sequence without adapters, in one step.
      Session session = must(engine->session({.adapters = uses})), plain = must(engine->session());
      Batch batch;
      std::vector<float> values;
      for (std::size_t i = 0; i < tokens.size(); i += 4) {
        const auto chunk = std::span(tokens).subspan(i, std::min<std::size_t>(4, tokens.size() - i));
        must(batch.add(plain, chunk));
        must(batch.add(session, chunk));
        const auto outputs = must(engine->forward(batch));
        for (const std::size_t row : {chunk.size() - 1, 2 * chunk.size() - 1}) values.insert(values.end(), outputs.row(row).begin(), outputs.row(row).end());
        batch = {};
      }
      return values;
    };
    const auto expected = logits_with(divided(1));
    for (const std::uint32_t ranks : {2u, 3u}) {
      const auto got = logits_with(divided(ranks));
      if (got.empty()) continue;
      INFO(golden.name << " on " << ranks << " ranks");
      CHECK(same_bits(got, expected));
      ++compared;
    }
    const auto by_layers = logits_with(divided(2, RankSplit::layers));
    if (by_layers.empty()) continue;
    ++divided_by_layers;
    CHECK(same_bits(by_layers, expected));
    // Over sockets.
    RankThreads others(golden_folder(golden.base), 1 + compared % 2);
    EngineOptions remote = others.options();
    remote.rank_split = compared % 3 == 0 ? RankSplit::layers : RankSplit::heads;
    const auto over_sockets = logits_with(remote);
    if (over_sockets.empty()) continue;
    ++over;
    INFO(golden.name << " over sockets");
    CHECK(same_bits(over_sockets, expected));
  }
  CHECK(over > 10);
  CHECK(compared > adapter_goldens().size());
  CHECK(divided_by_layers > 10);
}

TEST_CASE("adapters come and go while ranks in other processes compute") {
  const AdapterGolden golden = adapter_goldens().front();
  const auto tokens = read_tokens(golden_dir() / "adapters" / (golden.name + ".tokens.txt"));
  const auto logits_of = [&](const Engine& engine, const AdapterUse& use) {
    Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = {use}}));
    return all_logits(session, tokens, 5);
  };
  const auto path = adapter_folder(golden.adapters.front().first);
  RankThreads ranks(golden_folder(golden.base), 2);
  EngineOptions options = ranks.options();
  options.tokenizer = TokenizerUse::none;
  const Engine one = must(Engine::load(golden_folder(golden.base), {.tokenizer = TokenizerUse::none, .threads = 1}));
  const Engine many = must(Engine::load(golden_folder(golden.base), options));
  const auto expected = logits_of(one, {.adapter = must(one.adapter(path))});
  for (int i = 0; i < 5; ++i) {
    const Adapter adapter = must(many.adapter(path));
    CHECK(same_bits(logits_of(many, {.adapter = adapter}), expected));
    if (i % 2 == 0) {  // sessions keep an adapter whose handle has gone
      Session session = must(many.session({.adapters = {{.adapter = must(many.adapter(path))}}}));
      must(session.append(std::span(tokens).first(3)));
    }
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) {
        auto adapter = many.adapter(path);
        if (!adapter || !same_bits(logits_of(many, {.adapter = *adapter}), expected)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace test_rank_adapters
