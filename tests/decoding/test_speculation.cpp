// Contract 8: whatever a drafter says, a request gives the same tokens, log-probabilities and text, bit for bit, and
// leaves the same session.
#include "decoding/decoding.hpp"
#include "decoding/speculation_rig.hpp"
#include "engine/drawing_backend.hpp"
#include "engine/inside.hpp"
#include "engine/views.hpp"

namespace test_speculation {

using namespace tessera;
using namespace tessera::test;
using detail::Decoding;
using detail::Run;

TEST_CASE("with every drafter and every sampler a request gives what it gives without", "[speculation]") {
  for (const std::string& model : {std::string("llama-gqa"), std::string("mistral")}) {
    const Engine engine = load_golden(model);
    const std::uint32_t vocab = engine.spec().vocab_size;
    const auto prompt = make_tokens(3, 9, vocab);
    std::size_t turn = 0;
    for (const RequestKind& kind : request_kinds()) {
      const SessionOptions options{.kv = {.kind = turn++ % 3 == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}};
      const Outcome plain = generated(engine, kind, prompt, {}, options);
      REQUIRE(!plain.told.tokens.empty());
      CHECK(plain.figures.drafted == 0);
      const std::pair<const char*, std::shared_ptr<const Drafter>> drafters[] = {
          {"a liar", liar(vocab)},
          {"an oracle", oracle(plain.sequence, 0)},
          {"an oracle that lies", oracle(plain.sequence, 4)},
          {"n-grams", must(ngram_drafter({.shortest = 1}))},
          {"suffixes", must(suffix_drafter())},
          {"its guesses", must(lookahead_drafter({.ngram = 3}))},
          {"the model itself", must(model_drafter(engine))},
          {"its first layer", must(early_exit_drafter(1))},
      };
      for (const auto& [name, drafter] : drafters) {
        for (const DraftLength length : {DraftLength::longest, DraftLength::by_goodput}) {
          INFO(model << ", " << kind.name << ", drafted by " << name);
          const Outcome spec = generated(engine, kind, prompt, {.drafter = drafter, .max_drafts = 5, .length = length}, options);
          CHECK(spec.told == plain.told);
          CHECK(*spec.session == *plain.session);
          const Figures& f = spec.figures;
          CHECK(f.tokens == plain.figures.tokens);
          CHECK(f.tokens == 1 + f.steps + f.accepted);  // the first one comes from the prompt's logits
          CHECK(f.accepted <= f.drafted);
          if (length == DraftLength::by_goodput) continue;
          const std::string_view who = name;
          if (who != "n-grams" && who != "suffixes") CHECK(f.drafted > 0);
          // It draws from the same logits with the same numbers.
          if (who == "an oracle" || who == "the model itself") CHECK(f.accepted == f.drafted);
        }
      }
    }
  }
}

TEST_CASE("stop strings, stop tokens and ends within drafts end a text where they do without", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(4, 12, engine.spec().vocab_size);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 40;
  const Outcome whole = generated(engine, kind, prompt, {});
  for (std::size_t at = 1; at < 20; ++at) {
    RequestKind stops = kind;
    if (at % 3 == 0) stops.options.stop_tokens = {whole.told.tokens[at]};
    else if (at % 3 == 1) stops.options.max_tokens = at;
    else if (at < whole.told.text.size()) stops.options.stop_strings = {whole.told.text.substr(at, 1 + at % 3)};
    const Outcome plain = generated(engine, stops, prompt, {});
    const Outcome spec = generated(engine, stops, prompt, {.drafter = oracle(whole.sequence, 0), .max_drafts = 6, .length = DraftLength::longest});
    INFO("at " << at);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
  }
}

TEST_CASE("between two pieces the session is what it is without drafts", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(5, 14, engine.spec().vocab_size);
  const RequestKind kind = request_kinds()[2];
  const SessionOptions options{.kv = {.page_tokens = 16}};
  const Outcome whole = generated(engine, kind, prompt, {}, options);
  const SpeculateOptions speculate{.drafter = oracle(whole.sequence, 7), .max_drafts = 8, .length = DraftLength::longest};
  for (std::size_t pieces = 0; pieces <= whole.told.tokens.size(); ++pieces) {
    INFO("left after " << pieces);
    const Outcome plain = generated(engine, kind, prompt, {}, options, pieces), spec = generated(engine, kind, prompt, speculate, options, pieces);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
  }
  // A fork in between goes on by itself, and so does the generation.
  Session session = must(engine.session(options));
  must(session.append(prompt));
  Sampler sampler = kind.sampler(engine);
  GenerateOptions how = kind.options;
  how.speculate = speculate;
  Generation generation = session.generate(sampler, how);
  Told told;
  while (const auto piece = generation.next()) {
    told.add(must(Result<Piece>(*piece)));
    CHECK(session.tokens().size() == prompt.size() + told.tokens.size());
    CHECK(session.position() + 1 == session.tokens().size());
    Session fork = must(session.fork());
    must(fork.append(make_tokens(told.tokens.size(), 3, 90)));
    CHECK(must(fork.verify()).verdict == Verdict::same);
  }
  CHECK(told == whole.told);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("a stream is cut where it is without drafts", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(6, 10, engine.spec().vocab_size);
  const SessionOptions options{.kv = {.page_tokens = 16}, .context = 32, .stream = {.sinks = 2, .window = 9}};
  for (const RequestKind& kind : request_kinds()) {
    if (kind.name == "a grammar") continue;
    RequestKind longer = kind;
    longer.options.max_tokens = 80;
    const Outcome plain = generated(engine, longer, prompt, {}, options);
    REQUIRE(plain.session->edited);
    std::vector<Token> said(prompt);
    said.insert(said.end(), plain.told.tokens.begin(), plain.told.tokens.end());
    // Of a stream, the history does not say where it is.
    const auto knows = says([said](const DraftContext& context, std::span<Token> out) {
      std::size_t n = 0;
      for (std::size_t at = context.position; n < out.size() && at < said.size(); ++at) out[n++] = said[at];
      return n;
    });
    for (const auto& drafter : {knows, must(suffix_drafter()), must(ngram_drafter()), must(model_drafter(engine)), must(early_exit_drafter(1))}) {
      const Outcome spec = generated(engine, longer, prompt, {.drafter = drafter, .max_drafts = 5, .length = DraftLength::longest}, options);
      INFO(kind.name);
      CHECK(spec.told == plain.told);
      CHECK(*spec.session == *plain.session);
      if (drafter == knows) CHECK(spec.figures.accepted > 40);
    }
  }
}

TEST_CASE("a full context ends a generation with drafts as it does without", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(6, 10, engine.spec().vocab_size);
  const SessionOptions options{.kv = {.page_tokens = 16}, .context = 27};
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 0;
  const Outcome plain = generated(engine, kind, prompt, {}, options);
  CHECK(!plain.told.error.empty());
  for (const auto& drafter : {oracle(plain.sequence, 0), must(model_drafter(engine, options)), must(early_exit_drafter(1))}) {
    const Outcome spec = generated(engine, kind, prompt, {.drafter = drafter, .length = DraftLength::longest}, options);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
  }
}

TEST_CASE("drafts that find no pages are left out of the step", "[speculation]") {
  const SessionOptions options{.kv = {.page_tokens = 16}};
  const Engine roomy = load_golden("llama-gqa");
  const auto prompt = make_tokens(7, 12, roomy.spec().vocab_size);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 19;  // 31 positions: two pages
  const Outcome plain = generated(roomy, kind, prompt, {}, options);
  const std::uint64_t page = plain.session->kv_bytes / 2;
  const Engine tight = load_golden("llama-gqa", {.kv = {.page_tokens = 16}, .kv_budget = 2 * page});
  // Its drafts go on beyond what is wanted: into a third page.
  const auto long_drafts = says([](const DraftContext& context, std::span<Token> out) {
    std::ranges::fill(out, context.history.back());
    return out.size();
  });
  kind.options.max_tokens = 0;
  kind.options.stop_tokens = {plain.told.tokens.back()};
  const Outcome stopped = generated(roomy, kind, prompt, {}, options);
  const Outcome spec = generated(tight, kind, prompt, {.drafter = long_drafts, .max_drafts = 30, .length = DraftLength::longest}, options);
  CHECK(spec.told == stopped.told);
  CHECK(*spec.session == *stopped.session);
  CHECK(spec.figures.drafted < 30 * spec.figures.steps);
}

TEST_CASE("a drafter that fails, or says what is no token, ends nothing", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(8, 12, engine.spec().vocab_size);
  const RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  int calls = 0;
  const auto throws = says([&](const DraftContext& context, std::span<Token> out) -> std::size_t {
    if (++calls == 3) throw 1;
    out[0] = context.history.back();
    return 1;
  });
  Session session = must(engine.session());
  must(session.append(prompt));
  Sampler sampler = kind.sampler(engine);
  GenerateOptions how = kind.options;
  how.speculate = {.drafter = throws, .length = DraftLength::longest};
  Generation generation = session.generate(sampler, how);
  Told told;
  while (const auto piece = generation.next()) told.add(must(Result<Piece>(*piece)));
  CHECK(told == plain.told);
  CHECK(calls == 3);
  CHECK(generation.drafting().error().code() == ErrorCode::callback_failed);
  CHECK(Snapshot(session) == *plain.session);
}

TEST_CASE("a step with drafts that is cancelled leaves the session as it was", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(9, 15, engine.spec().vocab_size);
  const RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  for (const bool early : {false, true}) {
    std::stop_source stop;
    const auto exits = must(early_exit_drafter(1));
    struct Stops final : Drafter {
      std::shared_ptr<const Drafter> inner;
      std::unique_ptr<Drafter> begun;
      std::stop_source* stop = nullptr;
      std::vector<Token> sequence;
      Result<std::unique_ptr<Drafter>> start(const Engine& engine) const override {
        auto made = std::make_unique<Stops>();
        if (inner) made->begun = must(inner->start(engine));
        made->stop = stop;
        made->sequence = sequence;
        return std::unique_ptr<Drafter>(std::move(made));
      }
      Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
        if (context.history.size() > 20) stop->request_stop();
        if (begun) return begun->propose(context, out);
        std::size_t n = 0;
        for (std::size_t at = context.history.size(); n < out.size() && at < sequence.size(); ++at) out[n++] = sequence[at];
        return n;
      }
    };
    auto stops = std::make_shared<Stops>();
    if (early) stops->inner = exits;
    stops->stop = &stop;
    stops->sequence = plain.sequence;
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    GenerateOptions how = kind.options;
    how.stop = stop.get_token();
    how.speculate = {.drafter = stops, .max_drafts = 3, .length = DraftLength::longest};
    Told told;
    std::optional<Snapshot> before;
    {
      Generation generation = session.generate(sampler, how);
      for (;;) {
        before.emplace(session);
        const auto piece = generation.next();
        REQUIRE(piece);
        if (*piece) {
          told.add(**piece);
          continue;
        }
        CHECK(piece->error().code() == ErrorCode::cancelled);
        break;
      }
    }
    // (Between pieces there may be pages for drafts.)
    const Snapshot after(session);
    CHECK(after.tokens == before->tokens);
    CHECK(after.checksums == before->checksums);
    CHECK(must(session.verify()).verdict == Verdict::same);
    // It goes on as if nothing had been.
    how.stop = {};
    how.speculate = {};
    how.max_tokens = plain.told.tokens.size() - told.tokens.size();
    for (const auto& piece : session.generate(sampler, how)) told.add(must(Result<Piece>(piece)));
    CHECK(told == plain.told);
    CHECK(Snapshot(session) == *plain.session);
  }
}

TEST_CASE("a draw that fails among drafts can be asked again", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(10, 9, engine.spec().vocab_size);
  RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  kind.options.speculate = {.drafter = oracle(plain.sequence, 5), .max_drafts = 4, .length = DraftLength::longest};
  int draws = 0;
  std::size_t failed_draws = 0;
  Sampler sampler = sampling::chain().stage([&](sampling::Candidates&, const sampling::Context&) {
    if (++draws % 4 == 0) throw ++failed_draws;
  }).temperature(1.1f).seed(5).build();
  Session session = must(engine.session());
  must(session.append(std::span(prompt).first(8)));
  Decoding decoding(*state_of(session), sampler, kind.options, {prompt[8]});
  must(decoding.start_drafting());
  const auto& state = *detail::view_of(*state_of(session)).shared;
  Told told;
  std::size_t failures = 0;
  while (decoding.finish_reason() == FinishReason::none) {
    const Snapshot before(session);
    Run run(state, detail::all_layers(state));
    if (must(decoding.offer_ready(run, 64))) run.compute();
    const Result<std::optional<Piece>> piece = decoding.next(run);
    if (!piece) {
      ++failures;
      CHECK(piece.error().code() == ErrorCode::callback_failed);
      CHECK(session.tokens().size() == before.tokens.size());
      CHECK(checksums(session) == before.checksums);
    } else if (*piece) {
      told.add(**piece);
    }
  }
  CHECK(failures > 0);             // of draws from logits that were known
  CHECK(failures < failed_draws);  // the others were beside drafts: the next step had none, and drew again
  CHECK(told == plain.told);
  CHECK(Snapshot(session) == *plain.session);
  CHECK(decoding.figures().accepted > 10);
}

TEST_CASE("where the backend draws, it draws after drafts too", "[speculation]") {
  const Engine host = load_golden("llama-gqa");
  const Engine drawn = load_golden("llama-gqa");
  DrawingBackend& backend = make_drawing(drawn);
  const auto prompt = make_tokens(11, 9, host.spec().vocab_size);
  for (const RequestKind& kind : request_kinds()) {
    const Outcome plain = generated(host, kind, prompt, {});
    const std::size_t before = backend.draws;
    const Outcome spec = generated(drawn, kind, prompt, {.drafter = oracle(plain.sequence, 6), .max_drafts = 4, .length = DraftLength::longest});
    INFO(kind.name);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
    CHECK(spec.figures.accepted > spec.figures.steps);
    if (kind.name == "top-p") CHECK(backend.draws - before == spec.figures.steps + spec.figures.drafted);
    if (kind.name == "mirostat") CHECK(backend.draws == before);
  }
}

TEST_CASE("drafters that cannot be are errors before a token is drawn", "[speculation]") {
  const Engine engine = load_golden("llama-gqa"), other = load_golden("qwen2");
  Session session = must(engine.session());
  must(session.append({{1, 2, 3}}));
  const Snapshot before(session);
  Sampler sampler = sampling::chain().greedy().build();
  const auto error_of = [&](const SpeculateOptions& speculate) {
    Generation generation = session.generate(sampler, {.max_tokens = 3, .speculate = speculate});
    const auto piece = generation.next();
    REQUIRE(piece);
    REQUIRE(!*piece);
    return piece->error();
  };
  CHECK(error_of({.drafter = must(model_drafter(other))}).message().find("vocabulary") != std::string::npos);
  CHECK(error_of({.drafter = must(early_exit_drafter(0))}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.drafter = must(early_exit_drafter(engine.spec().n_layers()))}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.drafter = must(ngram_drafter()), .max_drafts = 0}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.drafter = must(ngram_drafter()), .max_drafts = 65}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.drafter = must(ngram_drafter()), .length = static_cast<DraftLength>(7)}).code() == ErrorCode::invalid_argument);
  CHECK(Snapshot(session) == before);
  CHECK(!ngram_drafter({.shortest = 0}));
  CHECK(!ngram_drafter({.shortest = 5, .longest = 4}));
  CHECK(!suffix_drafter({.shortest = 0}));
  CHECK(!suffix_drafter({.least = 1.5f}));
}

TEST_CASE("a sampler that is reseeded between two pieces draws with the new seed, drafts or not", "[speculation]") {
  const Engine host = load_golden("llama-gqa"), drawing = load_golden("llama-gqa");
  make_drawing(drawing);
  const auto prompt = make_tokens(3, 12, host.spec().vocab_size);
  const auto reseeded = [&](const Engine& engine, const SpeculateOptions& speculate) {
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = sampling::chain().temperature(1.0f).seed(1).build();
    Told told;
    Generation generation = session.generate(sampler, {.max_tokens = 30, .end_of_generation = EndOfGeneration::ignore, .speculate = speculate});
    while (const auto piece = generation.next()) {
      told.add(must(Result<Piece>(*piece)));
      if (told.tokens.size() % 4 == 3) sampler.reseed(told.tokens.size());
    }
    CHECK(must(session.verify()).verdict == Verdict::same);
    return told;
  };
  for (const Engine* engine : {&host, &drawing}) {
    const Told plain = reseeded(*engine, {});
    std::vector<Token> sequence(prompt);
    sequence.insert(sequence.end(), plain.tokens.begin(), plain.tokens.end());
    for (const auto& drafter : {oracle(sequence, 0), oracle(sequence, 5), liar(engine->spec().vocab_size)}) {
      CHECK(reseeded(*engine, {.drafter = drafter, .max_drafts = 6, .length = DraftLength::longest}) == plain);
    }
  }
}

TEST_CASE("nothing is computed behind a draft that ends the text", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(4, 12, engine.spec().vocab_size);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 30;
  const Outcome whole = generated(engine, kind, prompt, {});
  std::size_t at = 4;  // a token that comes for the first time
  while (std::ranges::find(whole.told.tokens.begin(), whole.told.tokens.begin() + static_cast<std::ptrdiff_t>(at), whole.told.tokens[at]) !=
         whole.told.tokens.begin() + static_cast<std::ptrdiff_t>(at)) {
    ++at;
  }
  REQUIRE(at < 10);
  kind.options.stop_tokens = {whole.told.tokens[at]};
  const Outcome spec = generated(engine, kind, prompt, {.drafter = oracle(whole.sequence, 0), .max_drafts = 20, .length = DraftLength::longest});
  CHECK(spec.told.tokens.size() == at + 1);
  CHECK(spec.told.finish == FinishReason::stop_token);
  CHECK(spec.figures.drafted == spec.figures.accepted);
}

TEST_CASE("lookahead is told what the model says behind its drafts, and drafts that", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(3, 12, engine.spec().vocab_size);
  // What is told: the likeliest token behind each draft, by a session that computes the same.
  class Checks final : public Drafter {
   public:
    explicit Checks(std::size_t* told) : told_(told) {}
    Result<std::unique_ptr<Drafter>> start(const Engine&) const override { return std::unique_ptr<Drafter>(new Checks(told_)); }
    bool wants_guesses() const noexcept override { return true; }
    Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
      history_.assign(context.history.begin(), context.history.end());
      drafts_ = make_tokens(history_.size(), out.size(), 90);
      std::ranges::copy(drafts_, out.begin());
      return out.size();
    }
    void observe(const DraftOutcome& outcome) override {
      if (outcome.drafted == 0) return;
      REQUIRE(outcome.guesses.size() == outcome.drafted);
      const Engine engine = load_golden("llama-gqa");
      Session session = must(engine.session());
      must(session.append(history_, {.logits = LogitsOf::none}));
      const Logits logits = must(session.append(std::span(drafts_).first(outcome.drafted), {.logits = LogitsOf::all}));
      for (std::size_t i = 0; i < outcome.drafted; ++i) {
        const auto best = std::ranges::max_element(logits[i]) - logits[i].begin();
        CHECK(outcome.guesses[i] == static_cast<Token>(best));
        ++*told_;
      }
    }

   private:
    std::size_t* told_;
    std::vector<Token> history_, drafts_;
  };
  std::size_t told = 0;
  const RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  CHECK(generated(engine, kind, prompt, {.drafter = std::make_shared<Checks>(&told), .max_drafts = 3, .length = DraftLength::longest}).told == plain.told);
  CHECK(told > 20);
  // Where a greedy text runs into a loop, the guesses come to be right.
  RequestKind greedy = request_kinds()[0];
  greedy.options.max_tokens = 45;
  const Outcome looped = generated(engine, greedy, prompt, {.drafter = must(lookahead_drafter({.ngram = 2})), .max_drafts = 6, .length = DraftLength::longest});
  CHECK(looped.told == generated(engine, greedy, prompt, {}).told);
  CHECK(looped.figures.accepted > 0);
  CHECK(lookahead_drafter({.ngram = 1}).error().code() == ErrorCode::invalid_argument);
  CHECK(lookahead_drafter({.ngram = 17}).error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_speculation
