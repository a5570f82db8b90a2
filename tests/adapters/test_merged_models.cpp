// A model with adapters merged into its weights computes what PEFT computes with the adapters beside it.
#include <cmath>

#include "adapters/adapters.hpp"
#include "adapters/widened_source.hpp"

namespace test_merged_models {

using namespace tessera;
using namespace tessera::test;
using detail::MergedSource;

// The golden's adapters that cannot be merged, or that tessera does not read: what the error says.
std::string_view refusal_of(std::string_view golden) {
  if (golden.find("alora") != std::string_view::npos) return "aLoRA";
  if (golden.find("embed-dora") != std::string_view::npos) return "DoRA of the table of embeddings";
  return {};
}

Result<std::shared_ptr<const ModelSource>> merged(const AdapterGolden& golden) {
  std::vector<MergedAdapter> adapters;
  for (const auto& [name, scale] : golden.adapters) adapters.push_back({adapter_folder(name), scale});
  return MergedSource::make(std::make_shared<WidenedSource>(must(open_model(golden_folder(golden.base)))), adapters, {});
}

TEST_CASE("merged models have the logits of PEFT with every kind of adapter", "[adapters]") {
  int count = 0;
  for (const AdapterGolden& golden : adapter_goldens()) {
    ++count;
    DYNAMIC_SECTION(golden.name) {
      const auto source = merged(golden);
      if (!refusal_of(golden.name).empty()) {
        REQUIRE_FALSE(source);
        CHECK(source.error().text().find(refusal_of(golden.name)) != std::string::npos);
        CHECK(source.error().code() == ErrorCode::unsupported);
        continue;
      }
      const Engine engine = must(Engine::load(*must(source), {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2}));
      Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
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
  CHECK(count >= 40);
}

}  // namespace test_merged_models
