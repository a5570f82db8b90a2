// Contract 8 with neighbours: whatever drafters say, a request of a scheduler gives the tokens, log-probabilities and text
// that its session gives alone and without drafts.
#include <tessera/scheduler/scheduler.hpp>

#include "decoding/speculation_rig.hpp"
#include "engine/drawing_backend.hpp"

namespace test_speculative_scheduler {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Case {
  const RequestKind* kind;
  std::vector<Token> prompt;
  Told told;                    // alone
  std::vector<Token> sequence;  // likewise, with the prompt
};

Case alone(const Engine& engine, const RequestKind& kind, std::uint64_t seed) {
  Case one{.kind = &kind, .prompt = make_tokens(seed, 5 + 3 * (seed % 7), engine.spec().vocab_size), .told = {}, .sequence = {}};
  Session session = must(engine.session());
  must(session.append(one.prompt));
  Sampler sampler = kind.sampler(engine);
  for (const auto& piece : session.generate(sampler, kind.options)) {
    if (piece) one.told.add(*piece);
    else one.told.error = piece.error().text();
  }
  one.sequence.assign(session.tokens().begin(), session.tokens().end());
  return one;
}

enum class By { liar, oracle, lying_oracle, ngrams, suffixes, lookahead, model, early_exit, bush, lying_bush };
constexpr By kAll[] = {By::liar, By::oracle, By::lying_oracle, By::ngrams, By::suffixes, By::lookahead, By::model, By::early_exit, By::bush, By::lying_bush};

std::shared_ptr<const Drafter> drafter(By by, const Engine& engine, const Engine& draft, const Case& of) {
  switch (by) {
    case By::liar: return liar(engine.spec().vocab_size);
    case By::oracle: return oracle(of.sequence, 0);
    case By::lying_oracle: return oracle(of.sequence, 4);
    case By::ngrams: return must(ngram_drafter({.shortest = 1}));
    case By::suffixes: return must(suffix_drafter());
    case By::lookahead: return must(lookahead_drafter());
    case By::model: return must(model_drafter(draft));
    case By::early_exit: return must(early_exit_drafter(1));
    case By::bush: return bush(engine.spec().vocab_size, of.sequence);
    case By::lying_bush: return bush(engine.spec().vocab_size);
  }
  return nullptr;
}

struct Served {
  std::vector<Told> told;
  SchedulerFigures figures;
};

// All of them at once, one step after another.
Served serve(const Engine& engine, const Engine& draft, std::span<const Case> cases, std::span<const By> by, DraftLength length,
             const StepLimits& limits = {}) {
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = limits}));
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    GenerateOptions options = cases[i].kind->options;
    options.speculate = {.drafter = drafter(by[i % by.size()], engine, draft, cases[i]), .max_drafts = 5, .length = length, .branches = 3};
    handles.push_back(must(scheduler.submit({.prompt = cases[i].prompt, .sampler = cases[i].kind->sampler(engine), .generate = options})));
  }
  Served served{.told = std::vector<Told>(cases.size()), .figures = {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    while (auto piece = handles[i].next()) served.told[i].add(piece->piece);
    if (const Status status = handles[i].status(); !status) served.told[i].error = status.error().text();
    const RequestFigures figures = handles[i].figures();
    CHECK(figures.accepted <= figures.drafted);
    CHECK(figures.tokens == served.told[i].tokens.size());
  }
  served.figures = scheduler.figures();
  return served;
}

}  // namespace

TEST_CASE("with every drafter and sampler a request gives what it gives alone, with 0, 3 or 15 neighbours", "[scheduler][speculation]") {
  const Engine engine = load_golden("llama-gqa", {.step_rows = 64}), draft = load_golden("llama-gqa");
  const auto kinds = request_kinds();
  std::vector<Case> cases;
  for (std::size_t i = 0; i < 2 * kinds.size(); ++i) cases.push_back(alone(engine, kinds[i % kinds.size()], i));
  std::uint64_t drafted = 0, accepted = 0;
  for (const By by : kAll) {
    for (const DraftLength length : {DraftLength::longest, DraftLength::by_goodput}) {
      for (const std::size_t n : {1, 4, 16}) {
        // Every kind is in one of the batches.
        for (std::size_t first = 0; first < kinds.size(); first += n) {
          const auto batch = std::span<const Case>(cases).subspan(std::min(first, cases.size() - n), n);
          const Served served = serve(engine, draft, batch, {{by}}, length);
          for (std::size_t i = 0; i < n; ++i) {
            INFO(batch[i].kind->name << ", drafter " << static_cast<int>(by) << ", one of " << n);
            CHECK(served.told[i] == batch[i].told);
          }
          CHECK(served.figures.accepted <= served.figures.drafted);
          drafted += served.figures.drafted;
          accepted += served.figures.accepted;
          if (length == DraftLength::longest && (by == By::liar || by == By::oracle || by == By::model || by == By::bush)) CHECK(served.figures.drafted > 0);
          if (length == DraftLength::longest && by == By::oracle) CHECK(served.figures.accepted == served.figures.drafted);
        }
      }
    }
  }
  CHECK(drafted > 1000);
  CHECK(accepted > 500);
  CHECK(engine.kv_figures().used_bytes == 0);
  CHECK(draft.kv_figures().used_bytes == 0);
}

TEST_CASE("drafters of all kinds beside each other, among prompts in chunks and few rows", "[scheduler][speculation]") {
  const Engine host = load_golden("llama-gqa"), draft = load_golden("llama-gqa"), drawing = load_golden("llama-gqa");
  make_drawing(drawing);
  const auto kinds = request_kinds();
  for (const Engine* engine : {&host, &drawing}) {
    std::vector<Case> cases;
    for (std::size_t i = 0; i < 24; ++i) cases.push_back(alone(host, kinds[(5 * i) % kinds.size()], 100 + i));
    for (const std::uint32_t rows : {3u, 9u, 200u}) {
      const Served served = serve(*engine, draft, cases, kAll, DraftLength::longest, {.rows = rows, .max_running = 7});
      for (std::size_t i = 0; i < cases.size(); ++i) {
        INFO(cases[i].kind->name << ", " << rows << " rows a step, request " << i);
        CHECK(served.told[i] == cases[i].told);
      }
      CHECK(served.figures.rows.max() <= rows);
    }
  }
}

TEST_CASE("requests with drafts that find no pages go on without, or give way, and give the same", "[scheduler][speculation]") {
  const Engine roomy = load_golden("llama-gqa"), draft = load_golden("llama-gqa");
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 40;
  std::vector<Case> cases;
  for (std::size_t i = 0; i < 8; ++i) cases.push_back(alone(roomy, kind, i));
  Session probe = must(roomy.session({.kv = {.page_tokens = 16}}));
  const std::uint64_t page = probe.kv().layout().page_bytes();
  std::uint64_t preempted = 0;
  for (const std::uint64_t pages : {5u, 7u, 11u}) {
    const Engine tight = load_golden("llama-gqa", {.kv = {.page_tokens = 16}, .kv_budget = pages * page});
    for (const By by : {By::liar, By::lying_oracle, By::early_exit, By::model, By::bush}) {
      const Served served = serve(tight, draft, cases, {{by}}, DraftLength::longest, {.headroom = 0.0});
      for (std::size_t i = 0; i < cases.size(); ++i) {
        INFO(pages << " pages, drafter " << static_cast<int>(by) << ", request " << i);
        CHECK(served.told[i] == cases[i].told);
      }
      preempted += served.figures.recomputed;
    }
    tight.trim();
    CHECK(tight.kv_figures().used_bytes == 0);
  }
  CHECK(preempted > 0);
}

TEST_CASE("drafts that one request has whatever they cost do not stop those of another", "[scheduler][speculation]") {
  const Engine engine = load_golden("llama-gqa");
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 48;
  const Case one = alone(engine, kind, 1), other = alone(engine, kind, 2);
  double time = 0.0;  // a step takes a second or two, and ten more if the costly drafter is asked
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.seconds = 1e6}, .clock = [&time] { return time += 1.0; }}));
  const auto submit = [&](const Case& of, const SpeculateOptions& speculate, std::size_t tokens) {
    GenerateOptions options = kind.options;
    options.speculate = speculate;
    options.max_tokens = tokens;
    return must(scheduler.submit({.prompt = of.prompt, .sampler = kind.sampler(engine), .generate = options}));
  };
  const auto read = [](RequestHandle& handle) {
    while (handle.next()) {}
    must(handle.status());
  };
  // What two rows take without drafts is known.
  RequestHandle first = submit(one, {}, 8), second = submit(other, {}, 8);
  read(first), read(second);
  const auto costly = says([&time](const DraftContext&, std::span<Token> out) {
    time += 10.0;
    out[0] = 7;
    return std::size_t{1};
  });
  RequestHandle always = submit(one, {.drafter = costly, .max_drafts = 1, .length = DraftLength::longest}, 48);
  RequestHandle gains = submit(other, {.drafter = oracle(other.sequence, 0), .max_drafts = 4}, 48);
  read(gains), read(always);
  CHECK(always.figures().accepted < 10);
  CHECK(gains.figures().drafted >= 30);
  CHECK(gains.figures().accepted == gains.figures().drafted);
}

TEST_CASE("samples of a request have drafts of their own, and kept sessions have the tokens that were given", "[scheduler][speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(9, 30, engine.spec().vocab_size);
  for (const RequestKind& kind : request_kinds()) {
    GenerateOptions options = kind.options;
    options.speculate = {.drafter = must(suffix_drafter()), .max_drafts = 4, .length = DraftLength::longest};
    Scheduler scheduler = must(Scheduler::create(engine));
    RequestHandle handle = must(scheduler.submit({.prompt = prompt, .sampler = kind.sampler(engine), .generate = options, .samples = 3, .session_at_end = SessionAtEnd::keep}));
    std::vector<Told> told(3);
    while (auto piece = handle.next()) told[piece->sample].add(piece->piece);
    must(handle.status());
    for (std::uint32_t i = 0; i < 3; ++i) {
      INFO(kind.name << ", sample " << i);
      Session session = must(engine.session());
      must(session.append(prompt));
      Sampler sampler = kind.sampler(engine);
      sampler.reseed(sampler.seed(), sampler.stream() + i);
      Told expected;
      for (const auto& piece : session.generate(sampler, kind.options)) expected.add(must(Result<Piece>(piece)));
      CHECK(told[i] == expected);
      const Session kept = *handle.take_session(i);
      CHECK(Snapshot(kept).tokens == Snapshot(session).tokens);
      CHECK(kept.position() == session.position());
      CHECK(must(kept.verify()).verdict == Verdict::same);
    }
  }
}

TEST_CASE("a drafter that cannot start ends its request alone; one that fails ends its drafts alone", "[scheduler][speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const auto kinds = request_kinds();
  const Case one = alone(engine, kinds[1], 3);
  Scheduler scheduler = must(Scheduler::create(engine));
  const auto submit = [&](std::shared_ptr<const Drafter> drafter) {
    GenerateOptions options = kinds[1].options;
    options.speculate = {.drafter = std::move(drafter), .max_drafts = 4, .length = DraftLength::longest};
    return must(scheduler.submit({.prompt = one.prompt, .sampler = kinds[1].sampler(engine), .generate = options}));
  };
  const auto all_of = [](RequestHandle& handle) {
    Told told;
    while (auto piece = handle.next()) told.add(piece->piece);
    if (const Status status = handle.status(); !status) told.error = status.error().text();
    return told;
  };
  RequestHandle cannot = submit(must(early_exit_drafter(99))), fails = submit(says([n = 0](const DraftContext&, std::span<Token> out) mutable {
    if (++n == 4) throw 1;
    out[0] = 7;
    return std::size_t{1};
  })), plain = submit(nullptr);
  CHECK(all_of(cannot).error.find("early exit after layer 99") != std::string::npos);
  CHECK(all_of(fails) == one.told);
  CHECK(all_of(plain) == one.told);
  CHECK(fails.figures().drafted == 3);
}

}  // namespace test_speculative_scheduler
