// Sessions with adapters beside the weights compute what PEFT computes.
#include <cmath>

#include "adapters/adapters.hpp"

namespace test_unmerged_models {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("sessions with adapters have the logits of PEFT with every kind of adapter, from a folder and from GGUF", "[adapters]") {
  auto goldens = adapter_goldens();
  REQUIRE(gguf_adapter_goldens().size() >= 12);
  for (AdapterGolden& golden : gguf_adapter_goldens()) goldens.push_back(std::move(golden));
  for (const AdapterGolden& golden : goldens) {
    if (golden.name.find("embed-dora") != std::string::npos) continue;
    DYNAMIC_SECTION(golden.name) {
      const Engine engine =
          must(Engine::load(golden.base.ends_with(".gguf") ? golden_dir() / golden.base : golden_folder(golden.base),
                            {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2}));
      std::vector<AdapterUse> uses;
      for (const auto& [name, scale] : golden.adapters) uses.push_back({.adapter = must(engine.adapter(adapter_folder(name))), .scale = scale});
      Session session = must(engine.session({.kv = {.dtype = DType::f32}, .adapters = uses}));
      const auto tokens = read_tokens(golden_dir() / "adapters" / (golden.name + ".tokens.txt"));
      const auto expected = read_floats(golden_dir() / "adapters" / (golden.name + ".logits.f32"));
      const auto logits = all_logits(session, tokens, tokens.size());
      REQUIRE(logits.size() >= expected.size());
      const auto last = std::span(logits).last(expected.size());
      float difference = 0.0f;
      for (std::size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, std::fabs(last[i] - expected[i]));
      INFO("largest difference " << difference);
      CHECK(difference <= golden.tolerance);
    }
  }
}

}  // namespace test_unmerged_models
