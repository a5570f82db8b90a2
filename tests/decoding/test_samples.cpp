// Samples of one prompt: each is what a fork gives alone, and the prompt's pages are there once.
#include <limits>

#include <tessera/decoding/samples.hpp>

#include "decoding/speculation_rig.hpp"
#include "engine/drawing_backend.hpp"

namespace test_samples {

using namespace tessera;
using namespace tessera::test;

namespace {

Sampler reseeded(const Sampler& sampler, std::uint32_t i) {
  Sampler own = must(sampler.clone());
  own.reseed(sampler.seed(), sampler.stream() + i);
  return own;
}

struct Alone {
  Told told;
  double logprob = 0.0;
  Figures figures;
  std::optional<Snapshot> session;
};

Alone alone(const Session& session, const Sampler& sampler, std::uint32_t i, const GenerateOptions& options) {
  Session own = must(session.kv().kind() == KvKind::paged ? session.fork() : session.clone());
  Sampler drawing = reseeded(sampler, i);
  Alone result;
  {
    Generation generation = own.generate(drawing, options);
    for (const auto& piece : generation) {
      result.told.add(must(Result<Piece>(piece)));
      result.logprob += static_cast<double>(piece->logprob);
    }
    result.figures = generation.figures();
  }
  result.session.emplace(own);
  return result;
}

std::vector<Told> all_of(Samples& samples) {
  std::vector<Told> told(samples.size());
  while (auto piece = samples.next()) told[piece->sample].add(piece->piece);
  must(samples.status());
  return told;
}

}  // namespace

TEST_CASE("sample i is what a fork gives whose sampler has the stream plus i", "[samples]") {
  const Engine host = load_golden("llama-gqa", {.step_rows = 16});
  const Engine drawing = load_golden("llama-gqa");
  make_drawing(drawing);
  std::size_t turn = 0;
  for (const Engine* engine : {&host, &drawing}) {
    const auto prompt = make_tokens(3, 21, engine->spec().vocab_size);
    for (const RequestKind& kind : request_kinds()) {
      INFO(kind.name);
      const SessionOptions how{.kv = {.kind = ++turn % 4 == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}};
      Session session = must(engine->session(how));
      must(session.append(prompt));
      if (turn % 3 == 0) must(session.add_pending(5));  // its logits are not known
      const Snapshot before(session);
      const Sampler sampler = kind.sampler(*engine);
      GenerateOptions options = kind.options;
      if (turn % 2 == 0) options.stop_tokens = {7, 30};
      SpeculateOptions speculate;
      if (turn % 3 != 1) speculate = {.drafter = turn % 3 == 0 ? must(ngram_drafter({.shortest = 1})) : liar(engine->spec().vocab_size), .max_drafts = 3, .length = DraftLength::longest};
      options.speculate = speculate;
      const BestBy best_by = turn % 5 == 0 ? BestBy::nothing : turn % 2 == 0 ? BestBy::mean_logprob : BestBy::sum_logprob;
      Samples samples = must(Samples::start(session, sampler, {.samples = 5, .generate = options, .best_by = best_by}));
      const std::vector<Told> told = all_of(samples);
      CHECK(Snapshot(session) == before);
      options.speculate = {};
      std::optional<std::uint32_t> best;
      double highest = -std::numeric_limits<double>::infinity();
      for (std::uint32_t i = 0; i < 5; ++i) {
        INFO("sample " << i);
        Alone one = alone(session, sampler, i, options);
        Told got = told[i];
        if (options.logprobs == 0) got.logprobs = one.told.logprobs;  // that come with what is the best
        CHECK(got == one.told);
        CHECK(samples.finish_reason(i) == one.told.finish);
        CHECK(samples.figures(i).tokens == one.told.tokens.size());
        const Session after = *samples.take_session(i);
        CHECK(Snapshot(after) == *one.session);
        CHECK(!samples.take_session(i));
        if (best_by == BestBy::nothing) {
          CHECK(samples.logprob(i) == 0.0);
          continue;
        }
        // The log-probabilities of the model, whether they were asked for or not.
        options.logprobs = std::max(kind.options.logprobs, 1u);
        const double logprob = alone(session, sampler, i, options).logprob;
        options.logprobs = kind.options.logprobs;
        CHECK(samples.logprob(i) == logprob);
        const double score = best_by == BestBy::sum_logprob ? logprob : logprob / static_cast<double>(one.told.tokens.size());
        CHECK(samples.score(i) == score);
        if (score > highest) best = i, highest = score;
      }
      CHECK(samples.best() == best);
    }
  }
}

TEST_CASE("samples share the pages of their prompt", "[samples]") {
  const Engine engine = load_golden("llama-gqa", {.kv_budget = std::uint64_t{64} << 20});
  Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  must(session.append(make_tokens(1, 40, engine.spec().vocab_size)));  // two pages and a half
  const std::uint64_t page = session.kv().layout().page_bytes();
  REQUIRE(engine.kv_figures().used_bytes == 3 * page);
  const Sampler sampler = sampling::chain().temperature(1.0f).seed(4).build();
  Samples samples = must(Samples::start(session, sampler, {.samples = 6, .generate = {.max_tokens = 8, .end_of_generation = EndOfGeneration::ignore}}));
  CHECK(engine.kv_figures().used_bytes == 3 * page);
  for (int i = 0; i < 6; ++i) REQUIRE(samples.next());  // from the logits that are known
  CHECK(engine.kv_figures().used_bytes == 3 * page);
  std::size_t pieces = 6;
  while (samples.next()) {
    ++pieces;
    // Two whole pages are everybody's; the third is each one's own, and the session's.
    CHECK(engine.kv_figures().used_bytes == (3 + 6) * page);
  }
  CHECK(pieces == 48);
}

TEST_CASE("a sample that fails ends all of them, and the session is as it was", "[samples]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  must(session.append(make_tokens(1, 20, engine.spec().vocab_size)));
  const Snapshot before(session);
  const auto ends = [&](const Sampler& sampler, const GenerateOptions& options, ErrorCode code, std::size_t least) {
    Samples samples = must(Samples::start(session, sampler, {.samples = 3, .generate = options}));
    std::size_t pieces = 0;
    while (samples.next()) ++pieces;
    CHECK(samples.status().error().code() == code);
    CHECK(samples.status().error().code() == code);  // it stays
    CHECK(pieces >= least);
    CHECK(samples.finish_reason(1) == (code == ErrorCode::cancelled ? FinishReason::cancelled : FinishReason::error));
    CHECK(!samples.next());
    CHECK(Snapshot(session) == before);
  };
  const GenerateOptions some{.max_tokens = 30, .end_of_generation = EndOfGeneration::ignore};
  std::size_t draws = 0;
  const Sampler throws = sampling::chain().stage([&draws](sampling::Candidates&, const sampling::Context&) {
    if (++draws == 14) throw 1;
  }).temperature(1.0f).build();
  ends(throws, some, ErrorCode::callback_failed, 12);
  std::stop_source stop;
  std::size_t turns = 0;
  const Sampler stops = sampling::chain().stage([&](sampling::Candidates&, const sampling::Context&) {
    if (++turns == 9) stop.request_stop();
  }).temperature(1.0f).build();
  GenerateOptions stopped = some;
  stopped.stop = stop.get_token();
  ends(stops, stopped, ErrorCode::cancelled, 9);
  // No room for more pages than two samples need.
  const std::uint64_t page = session.kv().layout().page_bytes();
  const Engine tight = load_golden("llama-gqa", {.kv_budget = 5 * page});
  Session small = must(tight.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  must(small.append(make_tokens(1, 20, tight.spec().vocab_size)));
  const Snapshot was(small);
  {
    Samples samples = must(Samples::start(small, sampling::chain().temperature(1.0f).build(), {.samples = 4, .generate = some}));
    while (samples.next()) {}
    CHECK(samples.status().error().code() == ErrorCode::cache_full);
    CHECK(Snapshot(small) == was);
  }
  CHECK(tight.kv_figures().used_bytes == 2 * page);
  must(small.append(make_tokens(2, 5, tight.spec().vocab_size)));
  CHECK(must(small.verify()).verdict == Verdict::same);
}

TEST_CASE("samples that make no sense are refused", "[samples]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(make_tokens(1, 5, engine.spec().vocab_size)));
  const Sampler sampler = sampling::chain().build();
  CHECK(Samples::start(session, sampler, {.samples = 0}).error().code() == ErrorCode::invalid_argument);
  CHECK(Samples::start(session, sampler, {.samples = 1025}).error().code() == ErrorCode::invalid_argument);
  CHECK(Samples::start(session, sampler, {.best_by = static_cast<BestBy>(3)}).error().code() == ErrorCode::invalid_argument);
  CHECK(Samples::start(session, sampling::chain().temperature(-1.0f).build(), {}).error().code() == ErrorCode::invalid_argument);
  const Session empty = must(engine.session());
  Samples samples = must(Samples::start(empty, sampler, {.samples = 2}));
  CHECK(!samples.next());
  CHECK(samples.status().error().code() == ErrorCode::invalid_state);
}

}  // namespace test_samples
