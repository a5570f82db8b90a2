// What an operation of a backend reads, writes and uses up is what its signature says: the forward pass relies on no more.
#include <set>

#include <tessera/decoding/drafters.hpp>

#include "engine/head_models.hpp"
#include "engine/strict_backend.hpp"
#include "engine/wrapped_backend.hpp"

namespace test_activations {

using namespace tessera;
using namespace tessera::test;
using backend::Act;

TEST_CASE("the forward pass reads no activation without a value, and operations change those alone that they name",
          "[activations]") {
  for (const std::string& name : representative_models()) {
    DYNAMIC_SECTION(name) {
      std::set<std::string> complaints;
      const Engine plain = load_golden(name), watched = load_golden(name);
      wrap_backend<StrictBackend>(watched, complaints);
      auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
      tokens.resize(std::min<std::size_t>(tokens.size(), 24));
      for (const LogitsOf which : {LogitsOf::all, LogitsOf::last}) {
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, tokens.size()}) {
          Session expected = must(plain.session()), session = must(watched.session());
          for (std::size_t i = 0; i < tokens.size(); i += chunk) {
            const auto piece = std::span(tokens).subspan(i, std::min(chunk, tokens.size() - i));
            const Logits theirs = must(expected.append(piece, {.logits = which}));
            const Logits ours = must(session.append(piece, {.logits = which}));
            REQUIRE(same_bits(ours.values, theirs.values));
          }
        }
      }
      CHECK(complaints == std::set<std::string>());
    }
  }
}

TEST_CASE("draft heads read no activation without a value", "[activations][heads]") {
  for (const HeadCase& heads : head_cases()) {
    std::set<std::string> complaints;
    const Engine plain = load_heads(heads), watched = load_heads(heads);
    wrap_backend<StrictBackend>(watched, complaints);
    const auto guesses = [&](const Engine& engine) {
      Session session = must(engine.session());
      Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
      must(session.append(std::vector<Token>{1, 2, 3, 4, 5, 6, 7}));
      Generation generation = session.generate(sampler, {.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore,
                                                         .speculate = {.drafter = must(head_drafter()), .length = DraftLength::longest, .branches = 3}});
      std::vector<Token> tokens;
      for (const auto& piece : generation) tokens.push_back(must(Result<Piece>(piece)).token);
      must(generation.drafting());
      CHECK(generation.figures().drafted > 0);
      return tokens;
    };
    INFO(heads.name());
    CHECK(guesses(watched) == guesses(plain));
    CHECK(complaints == std::set<std::string>());
  }
}

namespace {

// Its norm writes somewhere else too, as a mistake would.
class CarelessBackend final : public ForwardingBackend {
 public:
  explicit CarelessBackend(std::unique_ptr<Backend> inner) : ForwardingBackend(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "careless"; }
  Status norm(const backend::Norm& norm, Act in, Act out) override {
    TESSERA_TRY_STATUS(inner().norm(norm, in, out));
    return inner().scale(2.0f, in);
  }
};

}  // namespace

TEST_CASE("whoever reads what is used up, or changes what is not its own, is found", "[activations]") {
  std::set<std::string> complaints;
  const Engine engine = load_golden("llama-gqa");
  wrap_backend<CarelessBackend>(engine);
  auto& strict = wrap_backend<StrictBackend>(engine, complaints);
  Session session = must(engine.session());
  must(session.append(std::vector<Token>{1, 2, 3}));
  CHECK(complaints.contains("norm_linear_group changes activation 0"));
  complaints.clear();
  must(strict.begin({}));
  must(strict.add(Act::h, Act::x));
  CHECK(complaints == std::set<std::string>{"add reads, without a value, activation 0", "add reads, without a value, activation 1"});
  complaints.clear();
  (void)strict.attention({}, Act::q, Act::attn);
  CHECK(complaints.contains("attention of a shape that begin() did not name"));
  Token token = 0;
  CHECK(!strict.sample(Act::logits, 0, {&token, 1}));
  CHECK(complaints.contains("sample draws what begin() did not name"));
  must(strict.end());
}

}  // namespace test_activations
