// The forward pass against implementations that nobody here wrote: Hugging Face transformers on tiny random models of
// every architecture, and llama2.c on a real one.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/models.hpp"

namespace test_golden {

using namespace tessera;
using namespace tessera::test;

namespace {

float max_difference(std::span<const float> a, std::span<const float> b) {
  float difference = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float d = std::fabs(a[i] - b[i]);
    difference = d > difference || d != d ? d : difference;
  }
  return difference;
}

}  // namespace

TEST_CASE("logits agree with transformers for every architecture", "[golden]") {
  const auto cases = golden_cases();
  REQUIRE(cases.size() >= 20);
  for (const GoldenCase& golden : cases) {
    DYNAMIC_SECTION(golden.name) {
      const auto tokens = read_tokens(golden_dir() / (golden.name + ".tokens.txt"));
      const auto expected = read_floats(golden_dir() / (golden.name + ".logits.f32"));
      REQUIRE(tokens.size() == golden.n_tokens);
      REQUIRE(expected.size() == (golden.n_tokens - golden.first_row) * golden.vocab);
      const Engine engine = load_golden(golden.name);
      Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
      const auto logits = all_logits(session, tokens, tokens.size());
      const float difference =
          max_difference(std::span(logits).subspan(golden.first_row * golden.vocab), expected);
      INFO("largest difference " << difference);
      CHECK(difference <= golden.tolerance);
    }
  }
}

TEST_CASE("stories260K: llama2.c's logits and greedy text", "[golden]") {
  const auto model = shared_dir() / "models/stories260K-f32.gguf";
  if (!std::filesystem::exists(model)) {
    return tests::skip("stories260K: the shared models are not there");
  }
  const auto tokens = read_tokens(shared_dir() / "models/stories260K.greedy-tokens.txt");
  REQUIRE(tokens.size() == 200);
  const Engine engine = must(Engine::load(model));

  SECTION("logits of the first 64 tokens") {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    const auto logits = all_logits(session, std::span(tokens).first(64), 64);
    const auto expected = read_floats(shared_dir() / "models/stories260K.logits.f32");
    REQUIRE(expected.size() == logits.size());
    CHECK(max_difference(logits, expected) <= 2e-3f);
  }
  SECTION("greedy tokens") {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(must(engine.tokenizer().encode(""))));
    Sampler sampler = sampling::chain().greedy().build();
    std::string text;  // run.c prints the text of the 200th token, and does not feed it
    for (const auto& piece : session.generate(sampler, {.max_tokens = 200})) text += must(Result<Piece>(piece)).text;
    REQUIRE(session.tokens().size() == 201);
    REQUIRE(tokens.size() <= 201);
    CHECK(std::ranges::equal(tokens, session.tokens().first(tokens.size())));
    std::ifstream in(shared_dir() / "models/stories260K.greedy.txt");
    std::string expected((std::istreambuf_iterator<char>(in)), {});
    while (!expected.empty() && expected.back() == '\n') expected.pop_back();
    CHECK(text == expected);
  }
}

}  // namespace test_golden
