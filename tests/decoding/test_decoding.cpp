// Decodings driven together, in chunks, with failing ones among them: each gives what generate() gives it alone.
#include "decoding/decoding.hpp"

#include <set>

#include "engine/drawing_backend.hpp"
#include "engine/kv_twins.hpp"
#include "engine/inside.hpp"
#include "engine/views.hpp"

namespace test_decoding {

using namespace tessera;
using namespace tessera::test;
using detail::Decoding;
using detail::Run;

namespace {

struct Told {
  std::vector<Token> tokens;
  std::string text;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::none;
  bool operator==(const Told&) const = default;
  void add(const Piece& piece) {
    tokens.push_back(piece.token);
    text += piece.text;
    logprobs.push_back(piece.logprob);
    finish = piece.finish;
  }
};

struct Case {
  std::vector<Token> prompt;
  GenerateOptions options;
  std::uint64_t seed = 0;
  bool remembers = false;

  [[nodiscard]] Sampler sampler() const {
    auto chain = sampling::chain();
    if (remembers) chain.penalties({.repetition = 1.2f}).mirostat({.tau = 4.0f});
    else chain.temperature(1.2f).top_p(0.95f);
    return chain.seed(seed).build();
  }
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (std::uint32_t i = 0; i < 7; ++i) {
    Case one{.prompt = make_tokens(i, 1 + 6 * i, 96), .options = {.max_tokens = 5 + 3 * i}, .seed = i, .remembers = i % 3 == 1};
    one.options.end_of_generation = i % 2 == 0 ? EndOfGeneration::ignore : EndOfGeneration::stop;
    if (i == 2) one.options.logprobs = 4;
    if (i == 4) one.options.stop_strings = {"e", "zz"};
    list.push_back(std::move(one));
  }
  return list;
}

Told alone(const Engine& engine, const Case& of) {
  Session session = must(engine.session());
  must(session.append(of.prompt));
  Sampler sampler = of.sampler();
  Told told;
  for (const auto& piece : session.generate(sampler, of.options)) told.add(must(Result<Piece>(piece)));
  return told;
}

}  // namespace

TEST_CASE("decodings that are driven together give what each gives alone", "[decoding]") {
  const Engine host = load_golden("llama-gqa", {.threads = 2});
  const Engine drawn = load_golden("llama-gqa", {.threads = 2, .step_rows = 16});
  make_drawing(drawn);
  for (const Engine* engine : {&host, &drawn}) {
    const auto all = cases();
    std::vector<Session> sessions;
    std::vector<Sampler> samplers;
    std::vector<std::unique_ptr<Decoding>> decodings;
    std::vector<Told> told(all.size());
    for (const Case& one : all) {
      sessions.push_back(must(engine->session()));
      samplers.push_back(one.sampler());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      decodings.push_back(std::make_unique<Decoding>(*state_of(sessions[i]), samplers[i], all[i].options, all[i].prompt));
    }
    const auto& state = *detail::view_of(*state_of(sessions[0])).shared;
    for (bool running = true; running;) {
      running = false;
      Run run(state, detail::all_layers(state));
      std::vector<std::size_t> in_run;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (decodings[i]->finish_reason() != FinishReason::none) continue;
        running = true;
        if (must(decodings[i]->offer_ready(run, 4))) in_run.push_back(i);  // four rows of a prompt at a time
      }
      run.compute();
      for (const std::size_t i : in_run) {
        if (const auto piece = must(decodings[i]->next(run))) told[i].add(*piece);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("request " << i);
      CHECK(told[i] == alone(host, all[i]));
      CHECK(decodings[i]->figures().tokens == told[i].tokens.size());
    }
  }
}

TEST_CASE("penalties see the answer that a generation draws, and the prompt only where asked", "[decoding]") {
  const Engine engine = load_golden("llama-gqa", {.threads = 2});
  const std::vector<Token> prompt = make_tokens(3, 20, 96);
  for (const sampling::Counted counted : {sampling::Counted::answer, sampling::Counted::sequence}) {
    // A penalty that no logit outweighs: no token comes twice, and with the prompt none of the prompt's.
    auto sampler = sampling::chain().penalties({.presence = 1e6f, .counted = counted}).greedy().build();
    for (int turn = 0; turn < 2; ++turn) {
      Session session = must(engine.session());
      must(session.append(prompt));
      std::vector<Token> drawn;
      for (const auto& piece : session.generate(sampler, {.max_tokens = 30, .end_of_generation = EndOfGeneration::ignore})) drawn.push_back(must(Result<Piece>(piece)).token);
      const std::set<Token> different(drawn.begin(), drawn.end());
      CHECK(different.size() == 30);
      const bool repeats = std::ranges::any_of(prompt, [&](Token token) { return different.contains(token); });
      CHECK(repeats == (counted == sampling::Counted::answer));
    }
  }
}

TEST_CASE("a step that fails leaves a decoding where it was, and it can be asked again", "[decoding]") {
  const Engine engine = load_golden("llama-gqa");
  const Case one = cases()[3];
  Session session = must(engine.session());
  int draws = 0;
  Sampler sampler = sampling::chain().stage([&draws](sampling::Candidates&, const sampling::Context&) {
    if (++draws % 2 == 1) throw 1;  // every other draw
  }).temperature(1.2f).top_p(0.95f).seed(one.seed).build();
  Decoding decoding(*state_of(session), sampler, one.options, one.prompt);
  const auto& state = *detail::view_of(*state_of(session)).shared;
  Told told;
  std::size_t failures = 0;
  while (decoding.finish_reason() == FinishReason::none) {
    const Snapshot before(session);
    Run run(state, detail::all_layers(state));
    REQUIRE(must(decoding.offer_ready(run, 5)));
    run.compute();
    const auto piece = decoding.next(run);
    if (!piece) {
      ++failures;
      CHECK(piece.error().code() == ErrorCode::callback_failed);
      CHECK(Snapshot(session) == before);
    } else if (*piece) {
      told.add(**piece);
    }
  }
  CHECK(failures == told.tokens.size());
  CHECK(told == alone(engine, one));
}

TEST_CASE("a text stream of the host's gives the pieces of generate()", "[decoding]") {
  const Engine engine = load_golden("llama-gqa");
  for (const Case& one : cases()) {
    Session session = must(engine.session());
    must(session.append(one.prompt));
    TextStream stream = must(TextStream::create(session, one.options));
    Sampler sampler = one.sampler();
    sampler.begin_answer(session.next_position());
    Told told;
    while (stream.finish_reason() == FinishReason::none) {
      const Token token = must(sampler.sample(session.logits(), session.tokens(), session.next_position()));
      told.add(must(stream.push(token, session.logits())));
      must(sampler.accept(token));
      must(session.add_pending(token));
      must(session.append({}));
    }
    CHECK(told == alone(engine, one));
    const Figures figures = stream.figures();
    CHECK(figures.tokens == told.tokens.size());
    CHECK(figures.prompt_tokens == one.prompt.size());
    CHECK(figures.bytes_per_token > engine.plan().weights_per_token);
    CHECK(stream.push(3).error().code() == ErrorCode::invalid_state);  // it has finished
  }
  Session session = must(engine.session());
  TextStream stream = must(TextStream::create(session, {.logprobs = 2}));
  CHECK(stream.push(3).error().code() == ErrorCode::invalid_argument);  // without logits
  const TextStream taken = std::move(stream);
  CHECK(stream.push(3).error().code() == ErrorCode::invalid_state);  // NOLINT: on purpose
}

}  // namespace test_decoding
