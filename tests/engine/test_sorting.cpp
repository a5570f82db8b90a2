// minGPT's sorting network (tests/golden/convert_mingpt.py): a trained model of which every input is known, and every answer.
#include <algorithm>
#include <vector>

#include "engine/models.hpp"

namespace test_sorting {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kLetters = 6;
constexpr Token kAlphabet = 3;

std::vector<Token> input(std::size_t number) {
  std::vector<Token> letters(kLetters);
  for (Token& letter : letters) {
    letter = static_cast<Token>(number % kAlphabet);
    number /= kAlphabet;
  }
  return letters;
}

// Inputs that the model does not sort, of all.
std::size_t wrong(const Engine& engine) {
  std::size_t count = 0;
  for (std::size_t number = 0; number < 729; ++number) {
    std::vector<Token> expected = input(number);
    Session session = must(engine.session());
    must(session.append(expected));
    std::ranges::sort(expected);
    Sampler sampler = sampling::chain().greedy().build();
    std::vector<Token> written;
    for (const auto& piece : session.generate(sampler, {.max_tokens = kLetters})) written.push_back(must(Result<Piece>(piece)).token);
    count += written != expected ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("minGPT's network sorts all 729 inputs", "[golden]") {
  const auto model = golden_dir() / "mingpt-sort.gguf";
  for (const Numerics numerics : {Numerics::reference, Numerics::automatic}) {
    CHECK(wrong(must(Engine::load(model, {.numerics = numerics, .threads = 1}))) == 0);
  }
}

}  // namespace test_sorting
