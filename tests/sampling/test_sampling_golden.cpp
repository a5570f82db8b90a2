// The same candidates as Hugging Face's logits processors (golden/make_goldens.py).
#include <fstream>
#include <sstream>
#include <string>

#include "rig.hpp"

#include "catch.hpp"

namespace test_sampling_golden {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

TEST_CASE("stages keep what Hugging Face's logits processors keep") {
  std::vector<float> logits(300);
  for (std::size_t i = 0; i < 300; ++i) logits[i] = static_cast<float>((i * 7919 + 13) % 1009) / 64 - 8;
  std::vector<Token> history(40);
  for (int i = 0; i < 40; ++i) history[static_cast<std::size_t>(i)] = i * i % 300;

  std::ifstream file(TESSERA_SOURCE_DIR "/tests/sampling/golden/huggingface.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    std::istringstream words(line);
    std::string name;
    float option = 0;
    words >> name >> option;
    CAPTURE(name, option);
    Rig rig(logits);
    if (name == "repetition") {
      const auto got = rig.apply(Penalties{{.repetition = option}}, Context{.history = history});
      for (const auto& candidate : got) {
        std::string word;
        words >> word;
        REQUIRE(static_cast<double>(candidate.logit) == Approx(std::stod(word)).epsilon(1e-6));
      }
      continue;
    }
    std::vector<Token> wanted;
    for (Token token; words >> token;) wanted.push_back(token);
    if (name == "top_k") CHECK(tokens_of(rig.apply(TopK{static_cast<std::size_t>(option)})) == wanted);
    if (name == "top_p") CHECK(tokens_of(rig.apply(TopP{option})) == wanted);
    if (name == "typical_p") CHECK(tokens_of(rig.apply(TypicalP{option})) == wanted);
    if (name == "min_p") CHECK(tokens_of(rig.apply(MinP{option})) == wanted);
  }
  CHECK(cases == 16);
}

}  // namespace test_sampling_golden
