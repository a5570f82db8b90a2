// Adapters on several ranks give the bits that they give on one.
#include "adapters/adapters.hpp"
#include "ranks/divided.hpp"

namespace test_rank_adapters {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("adapters of PEFT give one rank's bits on several ranks") {
  std::size_t compared = 0, divided_by_layers = 0;
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
  }
  CHECK(compared > adapter_goldens().size());
  CHECK(divided_by_layers > 10);
}

}  // namespace test_rank_adapters
