// Tokens that a file says are never drawn (tokenizer.ggml.suppress_tokens): no way to get a token gives one, and logits stay.
#include <tessera/decoding/beam_search.hpp>
#include <tessera/decoding/drafters.hpp>

#include "engine/changed_model.hpp"
#include "engine/drawing_backend.hpp"

namespace test_suppressed_tokens {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kTokens = 20;
const std::vector<Token> kPrompt = {1, 50, 7, 93, 22, 64};

std::vector<Token> generated(const Engine& engine, Sampler sampler, const std::shared_ptr<const Drafter>& drafter = {}) {
  Session session = must(engine.session());
  must(session.append(kPrompt));
  std::vector<Token> tokens;
  GenerateOptions options{.max_tokens = kTokens, .end_of_generation = EndOfGeneration::ignore};
  options.speculate = {.drafter = drafter, .max_drafts = 4, .length = DraftLength::longest};
  for (const auto& piece : session.generate(sampler, options)) tokens.push_back(must(Result<Piece>(piece)).token);
  return tokens;
}

Sampler greedy() { return sampling::chain().greedy().build(); }

Engine suppressing(const std::vector<Token>& tokens) {
  return changed_model("llama-gqa", [&](GgufWriter& writer) {
    must(writer.set_array("tokenizer.ggml.suppress_tokens", std::span<const Token>(tokens)));
  });
}

bool has_any(std::span<const Token> tokens, const std::vector<Token>& of) {
  return std::ranges::any_of(tokens, [&](Token token) { return std::ranges::find(of, token) != of.end(); });
}

}  // namespace

TEST_CASE("no generation draws a suppressed token, and logits are what they were", "[suppress]") {
  const Engine plain = load_golden("llama-gqa");
  const std::vector<Token> usual = generated(plain, greedy());
  const std::vector<Token> never = {usual[0], usual[3]};
  const Engine engine = suppressing(never);
  Session a = must(plain.session()), b = must(engine.session());
  CHECK(same_bits(all_logits(a, kPrompt, 4), all_logits(b, kPrompt, 4)));

  const std::vector<Token> text = generated(engine, greedy());
  CHECK(!has_any(text, never));
  CHECK(text == generated(plain, sampling::chain().deny(never).greedy().build()));
  CHECK(text == generated(engine, greedy(), must(ngram_drafter())));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(!has_any(generated(engine, sampling::chain().temperature(3.0f).seed(seed).build()), never));
  }

  // In a batch, whose rows are drawn together.
  Session first = must(engine.session()), second = must(engine.session());
  Sampler one = greedy(), two = greedy();
  Batch batch;
  must(batch.add(first, kPrompt, one));
  must(batch.add(second, kPrompt, two));
  const Outputs outputs = must(engine.forward(batch));
  CHECK(outputs.token(kPrompt.size() - 1) == text[0]);
  CHECK(outputs.token(2 * kPrompt.size() - 1) == text[0]);

  // Beams.
  for (const Beam& beam : must(beam_search(b, {.beams = 4, .results = 4, .max_tokens = 6, .end_of_generation = EndOfGeneration::ignore}))) {
    CHECK(!has_any(beam.tokens, never));
  }
}

TEST_CASE("where a backend draws, it does not where tokens are suppressed", "[suppress]") {
  const Engine plain = load_golden("llama-gqa");
  const std::vector<Token> never = {generated(plain, greedy())[1]};
  const Engine engine = suppressing(never);
  const std::vector<Token> text = generated(engine, greedy());
  DrawingBackend& backend = make_drawing(engine);
  CHECK(generated(engine, greedy()) == text);
  CHECK(generated(engine, greedy(), must(ngram_drafter())) == text);
  CHECK(backend.draws == 0);
}

TEST_CASE("explain() tells how many tokens are suppressed", "[suppress]") {
  const auto told = [](const Engine& engine) -> std::string {
    for (const KernelUse& use : must(engine.explain())) {
      if (use.kind == Operation::suppress_tokens) return use.kernel;
    }
    return "";
  };
  CHECK(told(suppressing({3, 4})) == "2 of the vocabulary");
  CHECK(told(load_golden("llama-gqa")).empty());
}

}  // namespace test_suppressed_tokens
