// Generations whose tokens the backend draws: the same pieces, sessions and errors as those of the host's sampler.
#include <functional>
#include <stdexcept>

#include "core/logit_errors.hpp"
#include "engine/drawing_backend.hpp"

namespace test_drawn_tokens {

using namespace tessera;
using namespace tessera::test;

namespace {

const std::vector<Token> kPrompt = {1, 20, 96, 5, 33};
constexpr std::size_t kTokens = 24;

const GenerateOptions kOptions{.max_tokens = kTokens, .end_of_generation = EndOfGeneration::ignore};

Session begun(const Engine& engine, const SessionOptions& options = {}) {
  Session session = must(engine.session(options));
  must(session.append(kPrompt));
  return session;
}

struct Told {
  std::vector<Token> tokens;
  std::string text;
  bool operator==(const Told&) const = default;
};

Told run(Session& session, Sampler& sampler, const GenerateOptions& options = kOptions) {
  Told told;
  for (const auto& piece : session.generate(sampler, options)) {
    if (!piece) FAIL(piece.error().text());
    told.tokens.push_back(piece->token);
    told.text += piece->text;
  }
  return told;
}

Sampler drawing() { return sampling::chain().temperature(1.1f).top_k(60).top_p(0.95f).seed(7, 2).build(); }

}  // namespace

TEST_CASE("the backend draws all tokens but the first, and they are the sampler's", "[drawn]") {
  const Engine host = load_golden("llama-gqa");
  const Engine engine = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(engine);
  const std::vector<std::function<Sampler()>> samplers = {
      drawing,
      [] { return sampling::chain().greedy().build(); },
      [] { return sampling::chain().seed(3).build(); },
  };
  for (const auto& make : samplers) {
    backend.draws = 0;
    Session expected = begun(host), session = begun(engine);
    Sampler a = make(), b = make();
    CHECK(run(session, b) == run(expected, a));
    CHECK(backend.draws == kTokens - 1);  // the logits for the first were there
    CHECK(session.has_pending());
    CHECK(session.logits().empty());
    CHECK(Snapshot(session) == Snapshot(expected));
    // Another generation goes on from the pending token.
    CHECK(run(session, b) == run(expected, a));
    CHECK(backend.draws == 2 * kTokens - 1);
    // The logits after the last token can be had, in each way.
    Session forked = must(session.fork()), scored = must(session.fork());
    const Logits last = must(expected.append({}));
    CHECK(same_bits(must(session.append({}))[0], last[0]));
    Batch batch;
    must(batch.add(forked, {.token = 9, .embedding = {}, .want = Want::logits}));
    const Outputs outputs = must(engine.forward(batch));
    const Token next[] = {9};
    CHECK(same_bits(must(expected.append(next))[0], outputs.row(0)));
    CHECK(must(scored.score(next)).size() == 1);
    CHECK(same_bits(scored.logits(), expected.logits()));
  }
}

TEST_CASE("other samplers, and log-probabilities, are the host's", "[drawn]") {
  const Engine engine = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(engine);
  Session session = begun(engine);
  Sampler other = sampling::chain().min_p(0.02f).seed(1).build();
  run(session, other);
  Sampler plain = drawing();
  GenerateOptions options = kOptions;
  options.logprobs = 2;
  run(session, plain, options);
  CHECK(backend.draws == 0);
  CHECK(session.position() + 1 == session.tokens().size());
}

TEST_CASE("a draw that fails leaves the session as it was, and what follows is what would have come", "[drawn]") {
  const Engine host = load_golden("llama-gqa");
  const Engine engine = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(engine);
  Session expected = begun(host);
  Sampler reference = drawing();
  const Told whole = run(expected, reference);

  const std::vector<std::pair<ErrorCode, std::function<Status(Token&)>>> failures = {
      {ErrorCode::numeric, [](Token&) -> Status { return detail::nan_logit_error(5); }},
      {ErrorCode::callback_failed, [](Token&) -> Status { throw std::runtime_error("no"); }},
      {ErrorCode::internal, [&](Token& token) -> Status { token = static_cast<Token>(engine.spec().vocab_size); return {}; }},
      {ErrorCode::internal, [](Token& token) -> Status { token = -1; return {}; }},
  };
  for (const auto& [code, failure] : failures) {
    Session session = begun(engine);
    Sampler sampler = drawing();
    GenerateOptions options = kOptions;
    options.max_tokens = 5;
    Told told = run(session, sampler, options);
    const Snapshot before(session);
    backend.after_draw = failure;
    const auto failed = session.generate(sampler, kOptions, {});
    backend.after_draw = {};
    REQUIRE(!failed);
    CHECK(failed.error().code() == code);
    CHECK(Snapshot(session) == before);
    options.max_tokens = kTokens - 5;
    const Told rest = run(session, sampler, options);
    told.tokens.insert(told.tokens.end(), rest.tokens.begin(), rest.tokens.end());
    CHECK(told.tokens == whole.tokens);
  }
}

TEST_CASE("a stream that is cut now and then has the same tokens", "[drawn]") {
  const Engine host = load_golden("llama-gqa");
  const Engine engine = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(engine);
  const SessionOptions options{.context = 24, .stream = {.sinks = 2, .window = 12}};
  Session expected = begun(host, options), session = begun(engine, options);
  Sampler a = drawing(), b = drawing();
  GenerateOptions many = kOptions;
  many.max_tokens = 80;
  CHECK(run(session, b, many) == run(expected, a, many));
  CHECK(Snapshot(session) == Snapshot(expected));
  CHECK(backend.draws == 79);  // all but the first, also in the steps that cut
}

TEST_CASE("a stop between two draws keeps the tokens delivered", "[drawn]") {
  const Engine engine = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(engine);
  Session session = begun(engine);
  Sampler sampler = drawing();
  GenerateOptions options = kOptions;
  options.max_tokens = 3;
  run(session, sampler, options);
  const Snapshot before(session);
  std::stop_source stop;
  backend.after_draw = [&](Token&) -> Status { stop.request_stop(); return {}; };
  options.stop = stop.get_token();
  std::size_t pieces = 0;
  const auto stopped = session.generate(sampler, options, [&](const Piece&) { ++pieces; return true; });
  REQUIRE(!stopped);
  CHECK(stopped.error().code() == ErrorCode::cancelled);
  CHECK(pieces == 1);
  CHECK(session.tokens().size() == before.tokens.size() + 1);
  CHECK(session.has_pending());
}

}  // namespace test_drawn_tokens
