// Encoders on CUDA: attention to both sides, segments, windows around a row, heads that rank.
#include <cmath>
#include <iterator>
#include <sstream>

#include "cuda/backend/rig.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<std::vector<Token>> token_lines(const std::filesystem::path& path) {
  std::vector<std::vector<Token>> texts;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    texts.emplace_back(std::istream_iterator<Token>(numbers), std::istream_iterator<Token>());
  }
  return texts;
}

EngineOptions options(Numerics numerics) {
  EngineOptions of = on_cuda({.numerics = numerics});
  of.tokenizer = TokenizerUse::none;
  return of;
}

}  // namespace

TEST_CASE("vectors of encoders agree with transformers on CUDA too", "[cuda]") {
  for (const auto& entry : std::filesystem::directory_iterator(golden_dir() / "encoders")) {
    DYNAMIC_SECTION(entry.path().filename().string()) {
      const Engine engine = must(Engine::load(entry.path(), options(Numerics::invariant)));
      const auto texts = token_lines(entry.path() / "tokens.txt");
      const Embeddings vectors = must(engine.embed(texts, {.pooling = Pooling::mean, .normalises = false}));
      const auto expected = read_floats(entry.path() / "vectors.f32");
      REQUIRE(vectors.values().size() == expected.size());
      float difference = 0.0f;
      for (std::size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, std::fabs(vectors.values()[i] - expected[i]));
      INFO("largest difference " << difference);
      CHECK(difference <= 1e-5f);
    }
  }
}

TEST_CASE("a text's vector has the same bits alone and among others on CUDA", "[cuda]") {
  for (const char* name : {"bert-wide", "modernbert"}) {
    const auto folder = golden_dir() / "encoders" / name;
    const Engine engine = must(Engine::load(folder, options(Numerics::invariant)));
    const auto texts = token_lines(folder / "tokens.txt");
    const Embeddings together = must(engine.embed(texts));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Embeddings alone = must(engine.embed(std::span(&texts[i], 1)));
      CAPTURE(name, i);
      CHECK(std::ranges::equal(alone.row(0), together.row(i)));
    }
  }
}
