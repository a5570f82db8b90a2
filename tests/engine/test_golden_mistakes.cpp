// The goldens can tell: a part of the model that is left out, or another constant, changes a golden's logits by more than
// its tolerance.
#include "engine/mistaken_backend.hpp"
#include "engine/wrapped_backend.hpp"

namespace test_golden_mistakes {

using namespace tessera;
using namespace tessera::test;

namespace {

float largest_difference(const GoldenCase& golden, const Engine& engine, std::span<const Token> tokens, std::span<const float> expected) {
  Session session = must(engine.session());
  const auto logits = all_logits(session, tokens, tokens.size());
  float largest = 0.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float d = std::fabs(logits[golden.first_row * golden.vocab + i] - expected[i]);
    largest = d > largest || d != d ? d : largest;
  }
  return largest;
}

}  // namespace

// Of what norms add to a mean square, 1e-5 as in real models changes less than the tolerance: one golden of an architecture
// has a larger one, which must not be 1e-5 or 1e-6 to a reader.
TEST_CASE("a golden fails if a part of its model is left out, or a constant is another", "[golden]") {
  using OfArchitecture = std::pair<std::string, std::string>;
  std::set<OfArchitecture> epsilons, seen_epsilons;
  std::size_t n_seen = 0;
  for (const GoldenCase& golden : golden_cases()) {
    INFO(golden.name);
    const auto tokens = read_tokens(golden_dir() / (golden.name + ".tokens.txt"));
    const auto expected = read_floats(golden_dir() / (golden.name + ".logits.f32"));
    const Engine engine = load_golden(golden.name, {.kv = {.dtype = DType::f32, .prefix = PrefixReuse::off}});
    auto& backend = wrap_backend<MistakenBackend>(engine, engine.spec());
    REQUIRE(largest_difference(golden, engine, tokens, expected) <= golden.tolerance);
    for (const std::string& mistake : std::set(backend.can_make)) {
      backend.makes = mistake;
      const float by = largest_difference(golden, engine, tokens, expected);
      const bool is_seen = !(by <= golden.tolerance);
      n_seen += is_seen ? 1 : 0;
      if (mistake.find("epsilon") == std::string::npos) {
        INFO(mistake << " changes the logits by " << by);
        CHECK(is_seen);
        continue;
      }
      epsilons.emplace(engine.spec().architecture, mistake);
      if (is_seen) seen_epsilons.emplace(engine.spec().architecture, mistake);
    }
  }
  for (const auto& [architecture, mistake] : epsilons) {
    INFO(architecture << ": " << mistake);
    CHECK(seen_epsilons.contains({architecture, mistake}));
  }
  CHECK(n_seen > 1000);
}

}  // namespace test_golden_mistakes
