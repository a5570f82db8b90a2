// What a session promises: tokens and logits after each call, pending tokens, stops, scores, figures.
#include <cmath>
#include <cstring>

#include "engine/models.hpp"

namespace test_session {

using namespace tessera;
using namespace tessera::test;

namespace {

Sampler greedy() { return sampling::chain().greedy().build(); }

// A sampler that says what it is told to, whatever the logits.
Sampler scripted(std::vector<Token> tokens) {
  return sampling::chain()
      .stage([tokens = std::move(tokens), first = std::size_t{0}](sampling::Candidates& candidates,
                                                                  const sampling::Context& context) mutable {
        if (first == 0) first = context.position;
        const Token wanted = tokens[(context.position - first) % tokens.size()];
        candidates.remove_if([wanted](const sampling::Candidate& c) { return c.token != wanted; });
      })
      .build();
}

struct Told {
  std::vector<Token> tokens;
  std::string text;
  FinishReason finish = FinishReason::none;
};

Told run(Session& session, Sampler& sampler, const GenerateOptions& options) {
  Told told;
  for (const auto& piece : session.generate(sampler, options)) {
    if (!piece) FAIL(piece.error().text());
    told.tokens.push_back(piece->token);
    told.text += piece->text;
    told.finish = piece->finish;
  }
  return told;
}

}  // namespace

TEST_CASE("append gives the logits that were asked for", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session session = must(engine.session());
  const auto all = all_logits(session, tokens, tokens.size());
  const std::size_t vocab = engine.spec().vocab_size;
  const auto row = [&](std::size_t i) { return std::span<const float>(all).subspan(i * vocab, vocab); };

  must(session.clear());
  const Logits last = must(session.append(tokens));
  REQUIRE(last.rows() == 1);
  CHECK(same_bits(last[0], row(tokens.size() - 1)));
  CHECK(same_bits(session.logits(), last[0]));

  must(session.clear());
  const std::size_t wanted[] = {0, 3, 11};
  const Logits some = must(session.append(tokens, {.rows = wanted}));
  REQUIRE(some.rows() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(some[i], row(wanted[i])));
  CHECK(session.logits().empty());  // the last row's were not asked for

  must(session.clear());
  CHECK(must(session.append(tokens, {.logits = LogitsOf::none})).rows() == 0);
  CHECK(session.position() == tokens.size());
  const std::size_t descending[] = {3, 1};
  const auto bad = session.append(std::span(tokens).first(4), {.rows = descending});
  REQUIRE(!bad);
  CHECK(bad.error().code() == ErrorCode::invalid_argument);
  CHECK(session.position() == tokens.size());
}

TEST_CASE("score gives ln p of each token", "[session]") {
  const Engine engine = load_golden("qwen3");
  const auto tokens = read_tokens(golden_dir() / "qwen3.tokens.txt");
  Session session = must(engine.session());
  const auto logits = all_logits(session, tokens, tokens.size());
  const std::size_t vocab = engine.spec().vocab_size;

  must(session.clear());
  auto scores = must(session.score(std::span(tokens).first(10)));
  const auto rest = must(session.score(std::span(tokens).subspan(10)));
  scores.insert(scores.end(), rest.begin(), rest.end());
  REQUIRE(scores.size() == tokens.size());
  CHECK(std::isnan(scores[0]));
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const auto row = std::span(logits).subspan((i - 1) * vocab, vocab);
    double sum = 0.0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    const double expected = static_cast<double>(row[static_cast<std::size_t>(tokens[i])]) - std::log(sum);
    CHECK(scores[i] == Approx(expected).margin(1e-5));
  }
  CHECK(same_bits(session.logits(), std::span(logits).last(vocab)));

  must(session.truncate(4));  // what the logits are there is not known any more
  const auto unknown = session.score(std::span(tokens).subspan(4, 2));
  REQUIRE(!unknown);
  CHECK(unknown.error().code() == ErrorCode::invalid_state);
  CHECK(session.position() == 4);
}

TEST_CASE("the last generated token is pending until the next call", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session session = must(engine.session());
  must(session.append(std::span(prompt).first(5)));
  Sampler sampler = greedy();
  const Told told = run(session, sampler, {.max_tokens = 4});
  CHECK(told.finish == FinishReason::max_tokens);
  REQUIRE(told.tokens.size() == 4);
  CHECK(session.tokens().size() == 9);
  CHECK(session.position() == 8);
  CHECK(session.has_pending());
  CHECK(session.logits().empty());

  // Appending nothing computes it; the logits are those of a sequence that was given whole.
  const Logits after = must(session.append({}));
  CHECK(!session.has_pending());
  Session whole = must(engine.session());
  const std::vector<Token> sequence(session.tokens().begin(), session.tokens().end());
  CHECK(same_bits(must(whole.append(sequence))[0], after[0]));
  CHECK(whole.kv().checksum(0) == session.kv().checksum(0));

  // In a batch the pending token goes first.
  run(session, sampler, {.max_tokens = 1});
  REQUIRE(session.has_pending());
  Batch batch;
  must(batch.add(session, {.token = 7, .embedding = {}, .want = Want::logits}));
  const Outputs outputs = must(engine.forward(batch));
  const std::vector<Token> longer(session.tokens().begin(), session.tokens().end());
  CHECK(session.position() == longer.size());
  must(whole.clear());
  CHECK(same_bits(must(whole.append(longer))[0], outputs.row(0)));

  // Nothing to append and nothing pending: the logits that are known. After forward() they are the last row's.
  CHECK(same_bits(must(session.append({}))[0], outputs.row(0)));
  CHECK(same_bits(session.logits(), outputs.row(0)));
  CHECK(session.position() == longer.size());
  CHECK(must(session.append({}, {.logits = LogitsOf::none})).rows() == 0);
  const std::size_t first_row[] = {0};
  CHECK(session.append({}, {.rows = first_row}).error().code() == ErrorCode::invalid_argument);
  Session empty = must(engine.session());
  CHECK(empty.append({}).error().code() == ErrorCode::invalid_argument);
  CHECK(empty.generate(sampler, {.max_tokens = 1}, {}).error().code() == ErrorCode::invalid_state);
}

TEST_CASE("logits that are not known any more are computed again by append({}) and by generate()", "[session]") {
  for (const char* name : {"llama-gqa", "gpt2"}) {
    for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
      const Engine engine = load_golden(name);
      const auto tokens = read_tokens(golden_dir() / (std::string(name) + ".tokens.txt"));
      const SessionOptions options{.kv = {.kind = kind, .page_tokens = 16}};
      for (const std::size_t n : {1u, 7u, 16u, 17u}) {
        INFO(name << ", " << n << " tokens");
        Session fresh = must(engine.session(options));
        must(fresh.append(std::span(tokens).first(n)));
        const Snapshot expected(fresh);
        Sampler sampler = sampling::chain().temperature(0.9f).seed(3).build();
        const Told told = run(fresh, sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore});

        const auto truncated = [&] {
          Session session = must(engine.session(options));
          must(session.append(std::span(tokens).first(n + 1)));
          must(session.truncate(n));
          return session;
        };
        Session again = truncated();
        CHECK(again.logits().empty());
        CHECK(same_bits(must(again.append({}))[0], expected.logits));
        CHECK(Snapshot(again) == expected);
        Session generated = truncated();
        CHECK(run(generated, sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}).tokens == told.tokens);
        CHECK(must(generated.verify()).verdict == Verdict::same);

        // Not asked for, by append or by forward.
        Session unasked = must(engine.session(options));
        must(unasked.append(std::span(tokens).first(n), {.logits = LogitsOf::none}));
        CHECK(same_bits(must(unasked.append({}))[0], expected.logits));
        Session batched = must(engine.session(options));
        Batch batch;
        must(batch.add(batched, std::span(tokens).first(n), Want::nothing));
        must(engine.forward(batch));
        CHECK(same_bits(must(batched.append({}))[0], expected.logits));

        // One that fails loses nothing: the last token may be pending, and the next call computes it.
        std::stop_source stop;
        stop.request_stop();
        Session stopped = truncated();
        CHECK(stopped.append({}, {.stop = stop.get_token()}).error().code() == ErrorCode::cancelled);
        CHECK(stopped.tokens().size() == n);
        CHECK(same_bits(must(stopped.append({}))[0], expected.logits));
      }
    }
  }
}

TEST_CASE("an edited session's last token that is computed again is what a replay gives", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session session = must(engine.session());
  must(session.append(std::span(tokens).first(15)));
  must(session.remove(2, 6));
  must(session.truncate(9));
  must(session.append({}));
  CHECK(session.position() == 9);
  CHECK(session.logits().size() == engine.spec().vocab_size);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("a token of the host's is pending as one of generate()'s", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  Session ours = must(engine.session({.context = 8})), theirs = must(engine.session({.context = 8}));
  const Token prompt[] = {5, 6, 7};
  must(ours.append(prompt));
  must(theirs.append(prompt));
  Sampler sampler = scripted({20, 21, 22, 23, 24, 25});
  run(theirs, sampler, {.max_tokens = 1});
  must(ours.add_pending(20));
  CHECK(Snapshot(ours) == Snapshot(theirs));
  CHECK(ours.next_position() == 4);
  CHECK(same_bits(must(ours.append({}))[0], must(theirs.append({}))[0]));
  CHECK(ours.add_pending(-1).error().code() == ErrorCode::invalid_argument);
  CHECK(ours.add_pending(static_cast<Token>(engine.spec().vocab_size)).error().code() == ErrorCode::invalid_argument);
  CHECK(Snapshot(ours) == Snapshot(theirs));
  // As far as the context goes, and one more.
  for (Token token = 30; token < 35; ++token) must(ours.add_pending(token));
  CHECK(ours.tokens().size() == 9);
  CHECK(ours.add_pending(35).error().code() == ErrorCode::cache_full);
  must(ours.truncate(8));
  must(ours.append({}));
  CHECK(ours.position() == 8);
  must(ours.remove(1, 3));
  CHECK(ours.next_position() == 8);
}

TEST_CASE("leaving the loop early keeps the tokens delivered", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const Token prompt[] = {1, 2, 3};
  must(session.append(prompt));
  Sampler sampler = greedy();
  std::vector<Token> got;
  for (const auto& piece : session.generate(sampler, {.max_tokens = 20})) {
    got.push_back(must(Result<Piece>(piece)).token);
    if (got.size() == 3) break;
  }
  REQUIRE(session.tokens().size() == 6);
  CHECK(std::ranges::equal(got, session.tokens().subspan(3)));

  // Generated in one go, in pieces, or by a callback: the same tokens.
  Session again = must(engine.session());
  must(again.append(prompt));
  std::vector<Token> by_callback;
  const auto summary = must(again.generate(sampler, {.max_tokens = 20}, [&](const Piece& piece) {
    by_callback.push_back(piece.token);
    return by_callback.size() < 3;
  }));
  CHECK(summary.finish == FinishReason::callback);
  CHECK(summary.figures.tokens == 3);
  CHECK(by_callback == got);
}

TEST_CASE("stop tokens and end-of-generation tokens end without text", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const Token prompt[] = {5, 6};
  must(session.append(prompt));
  Sampler sampler = scripted({20, 21, 22, 23});
  const Told stopped = run(session, sampler, {.max_tokens = 10, .stop_tokens = {22}});
  CHECK(stopped.tokens == std::vector<Token>{20, 21, 22});
  CHECK(stopped.finish == FinishReason::stop_token);

  const auto eos = engine.tokenizer().eos();
  REQUIRE(eos);
  Session other = must(engine.session());
  must(other.append(prompt));
  Sampler ends = scripted({20, *eos, 21});
  CHECK(run(other, ends, {.max_tokens = 10}).finish == FinishReason::end_of_generation);
  CHECK(other.tokens().back() == *eos);
  Sampler ignores = scripted({20, *eos, 21});
  const Told all = run(other, ignores, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore});
  CHECK(all.finish == FinishReason::max_tokens);
}

TEST_CASE("log-probabilities of the model's own distribution come with each piece", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const Token prompt[] = {5, 6};
  must(session.append(prompt));
  const std::vector<float> logits(session.logits().begin(), session.logits().end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  Sampler sampler = scripted({20});
  auto generation = session.generate(sampler, {.max_tokens = 1, .logprobs = 5});
  const auto piece = generation.next();
  REQUIRE(piece);
  REQUIRE(*piece);
  CHECK((*piece)->logprob == Approx(static_cast<double>(logits[20]) - std::log(sum)).margin(1e-5));
  const auto& top = (*piece)->top;
  REQUIRE(top.size() == 5);
  CHECK(top[0].token == std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (std::size_t i = 1; i < top.size(); ++i) CHECK(top[i - 1].logprob >= top[i].logprob);
  CHECK(!generation.next());
  CHECK(generation.figures().tokens == 1);
  CHECK(generation.figures().prompt_tokens == 2);
  CHECK(generation.figures().time_to_first_token > 0.0);
  CHECK(generation.figures().bytes_per_token > engine.plan().weights_per_token);
}

TEST_CASE("a full context is an error that says so, with nothing lost", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session({.context = 8}));
  const Token prompt[] = {1, 2, 3, 4, 5, 6};
  must(session.append(prompt));
  const auto checksum = session.kv().checksum(1);
  const auto full = session.append(std::span(prompt).first(3));
  REQUIRE(!full);
  CHECK(full.error().code() == ErrorCode::cache_full);
  CHECK(session.position() == 6);
  CHECK(session.kv().checksum(1) == checksum);
  CHECK(session.logits().size() == engine.spec().vocab_size);

  Sampler sampler = scripted({20});
  std::size_t delivered = 0;
  ErrorCode last = ErrorCode::internal;
  for (const auto& piece : session.generate(sampler, {})) {
    if (piece) {
      ++delivered;
    } else {
      last = piece.error().code();
    }
  }
  CHECK(delivered == 3);  // two that fit, and one that is pending
  CHECK(last == ErrorCode::cache_full);
  CHECK(session.tokens().size() == 9);
  must(session.truncate(2));
  CHECK(session.position() == 2);
  must(session.append(std::span(prompt).first(3)));
  CHECK(!engine.session({.context = 1'000'000}));
}

TEST_CASE("what was moved from says so", "[session]") {
  Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const Session kept = std::move(session);
  const Engine other = std::move(engine);
  const Token tokens[] = {1, 2};
  Sampler sampler = greedy();
  Batch batch;
  CHECK(session.append(tokens).error().code() == ErrorCode::invalid_state);  // NOLINT: on purpose
  CHECK(session.score(tokens).error().code() == ErrorCode::invalid_state);
  CHECK(session.clone().error().code() == ErrorCode::invalid_state);
  CHECK(batch.add(session, tokens).error().code() == ErrorCode::invalid_state);
  auto generation = session.generate(sampler);
  const auto only = generation.next();
  REQUIRE(only);
  CHECK(only->error().code() == ErrorCode::invalid_state);
  CHECK(!generation.next());
  CHECK(engine.session().error().code() == ErrorCode::invalid_state);
  CHECK(engine.forward(batch).error().code() == ErrorCode::invalid_state);
  CHECK(other.session());
}

TEST_CASE("hidden states and layer ranges: a pipeline of two engines is the whole", "[session]") {
  const Engine engine = load_golden("llama-gqa");
  const std::uint32_t n_layers = engine.spec().n_layers();
  REQUIRE(n_layers >= 2);
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session whole = must(engine.session());
  const std::vector<float> expected = all_logits(whole, tokens, tokens.size());

  Session lower = must(engine.session());
  Session upper = must(engine.session());
  std::vector<float> got;
  for (std::size_t i = 0; i < tokens.size(); i += 5) {
    Batch first;
    const auto chunk = std::span(tokens).subspan(i, std::min<std::size_t>(5, tokens.size() - i));
    for (const Token token : chunk) must(first.add(lower, {.token = token, .embedding = {}, .want = Want::hidden}));
    const Outputs hidden = must(engine.forward(first, {.first_layer = 0, .last_layer = 1}));
    Batch second;
    for (std::size_t row = 0; row < chunk.size(); ++row) {
      must(second.add(upper, {.token = 0, .embedding = hidden.row(row), .want = Want::logits}));
    }
    const Outputs outputs = must(engine.forward(second, {.first_layer = 1}));
    for (std::size_t row = 0; row < chunk.size(); ++row) {
      got.insert(got.end(), outputs.row(row).begin(), outputs.row(row).end());
    }
  }
  CHECK(same_bits(got, expected));

  const auto mixed = lower.append(std::span(tokens).first(1));  // all layers, in a session that holds one
  REQUIRE(!mixed);
  CHECK(mixed.error().code() == ErrorCode::invalid_state);
}

}  // namespace test_session
