// A request that searches finds what beam_search() finds, whatever its neighbours do and though its pages are taken; and
// leaves nothing behind wherever it ends.
#include <chrono>
#include <map>
#include <random>

#include <unistd.h>

#include <tessera/decoding/beam_search.hpp>
#include <tessera/decoding/drafters.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "engine/kv_twins.hpp"
#include "sanitized.hpp"

namespace test_beam_requests {

using namespace tessera;
using namespace tessera::test;

namespace {

Engine load_story(EngineOptions options = {}) {
  if (options.threads == 0) options.threads = 2;
  return load_stories(options, "tessera-stories-draft");
}

void check_same(const std::vector<Beam>& got, const std::vector<Beam>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].tokens == expected[i].tokens);
    CHECK(got[i].text == expected[i].text);
    CHECK(got[i].score == expected[i].score);
    CHECK(got[i].logprob == expected[i].logprob);
    CHECK(got[i].finish == expected[i].finish);
  }
}

std::vector<Beam> alone(const Engine& engine, const std::vector<Token>& prompt, const BeamOptions& options) {
  Session session = must(engine.session());
  must(session.append(prompt));
  return must(beam_search(session, options));
}

// To its end; it has no pieces.
std::vector<Beam> beams_of(RequestHandle& request) {
  if (request.next()) FAIL("a search has no pieces");
  must(request.status());
  CHECK(request.state() == RequestState::ended);
  return request.take_beams();
}

}  // namespace

TEST_CASE("a request's beams are those of a search alone", "[scheduler][beams]") {
  for (const char* const model : {"llama-gqa", "gemma3", "lfm2"}) {  // one group of layers; two; recurrent layers
    INFO(model);
    const Engine engine = load_golden(model, {.threads = 2});
    Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 8}}));
    const auto prompt = make_tokens(3, 21, engine.spec().vocab_size);
    for (const BeamOptions& options : {BeamOptions{.beams = 1, .max_tokens = 9},
                                       BeamOptions{.beams = 4, .max_tokens = 12, .stop_tokens = {3, 40, 41}},
                                       BeamOptions{.beams = 6, .results = 2, .max_tokens = 7, .length_penalty = 0.0f,
                                                   .early_stopping = EarlyStopping::first, .end_of_generation = EndOfGeneration::ignore}}) {
      RequestHandle request = must(scheduler.submit({.prompt = prompt, .beams = options, .session_at_end = SessionAtEnd::keep}));
      const auto found = beams_of(request);
      check_same(found, alone(engine, prompt, options));
      CHECK(request.finish_reason() == found.front().finish);
      CHECK(request.take_beams().empty());
      std::size_t longest = 0;
      for (const Beam& beam : found) longest = std::max(longest, beam.tokens.size());
      CHECK(request.figures().tokens >= longest);
      // The session is the prompt's: what goes on from it, a token or another search, has not seen the beams.
      std::optional<Session> session = request.take_session();
      REQUIRE(session.has_value());
      CHECK(std::vector<Token>(session->tokens().begin(), session->tokens().end()) == prompt);
      RequestHandle again = must(scheduler.submit({.prompt = {}, .session = *std::move(session), .beams = options}));
      check_same(beams_of(again), found);
    }
    // From a session whose logits are known, and behind one.
    Session known = must(engine.session());
    must(known.append(prompt));
    const BeamOptions options{.beams = 3, .max_tokens = 6, .end_of_generation = EndOfGeneration::ignore};
    RequestHandle at_once = must(scheduler.submit({.prompt = {}, .session = must(known.fork()), .beams = options}));
    check_same(beams_of(at_once), alone(engine, prompt, options));
    auto longer = prompt;
    longer.push_back(5);
    RequestHandle behind = must(scheduler.submit({.prompt = {5}, .session = must(known.fork()), .beams = options}));
    check_same(beams_of(behind), alone(engine, longer, options));
    CHECK(scheduler.idle());
  }
}

TEST_CASE("searches among other requests, in too few pages, paused and cancelled, find what they find alone", "[scheduler][beams]") {
  std::uint64_t preempted = 0, again = 0, finished = 0;
  constexpr int kRounds = tests::kSanitized ? 4 : 12;
  for (int round = 0; round < kRounds; ++round) {
    EngineOptions options{.kv = {.page_tokens = 16}, .context = 160, .step_rows = 48};
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / ("tessera-beam-requests-" + std::to_string(::getpid()) + "-" + std::to_string(round));
    const std::uint64_t page = must(load_story(options).session()).kv().layout().bytes_per_token() * 16;
    options.kv_budget = page * (round % 2 == 0 ? 20 : 14);
    if (round % 3 == 2) {
      options.kv_file = file;
      options.kv_file_bytes = 200 * page;
    }
    const Engine engine = load_story(options);
    std::mt19937 random(static_cast<std::uint32_t>(round));
    double time = 0.0;
    std::map<RequestEvent::Kind, std::uint64_t> events;
    Scheduler scheduler = must(Scheduler::create(engine, {.policy = round % 4 == 0 ? shortest_first() : by_priority(),
                                                          .limits = {.seconds = 0.01, .rows = 24, .max_running = 12,
                                                                     .headroom = round % 2 == 0 ? 0.0 : 0.3},
                                                          .clock = [&] { return time += 1e-3; },
                                                          .on_event = [&](const RequestEvent& event) { ++events[event.kind]; }}));
    struct Asked {
      std::vector<Token> prompt;
      std::optional<BeamOptions> beams;  // none: it draws
      std::size_t tokens = 0;
      RequestHandle handle;
      std::vector<Token> drawn = {};
      bool is_cancelled = false, has_ended = false;
      std::optional<Error> error = {};
    };
    std::vector<Asked> asked;
    const auto begin = std::chrono::steady_clock::now();
    while (asked.size() < 16 || !std::ranges::all_of(asked, &Asked::has_ended)) {
      REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // or a request would never end
      if (asked.size() < 16 && random() % 4 == 0) {
        const auto prompt = make_tokens(random() % 5, 1 + random() % 50, engine.spec().vocab_size);
        const std::size_t tokens = 1 + random() % 40;
        Request request{.prompt = prompt, .priority = static_cast<std::int32_t>(random() % 3)};
        std::optional<BeamOptions> beams;
        if (random() % 2 == 0) {
          beams = BeamOptions{.beams = 1 + static_cast<std::uint32_t>(random() % 5), .max_tokens = tokens,
                              .end_of_generation = EndOfGeneration::ignore};
          request.beams = beams;
        } else {
          request.generate = {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore};
        }
        asked.push_back({.prompt = prompt, .beams = beams, .tokens = tokens, .handle = must(scheduler.submit(std::move(request)))});
      }
      if (!must(scheduler.step())) std::this_thread::sleep_for(std::chrono::microseconds(50));
      for (Asked& one : asked) {
        if (one.has_ended) continue;
        if (!one.is_cancelled && random() % 500 == 0) {
          one.handle.cancel();
          one.is_cancelled = true;
        }
        if (random() % 100 == 0) one.handle.pause();
        if (random() % 10 == 0) one.handle.resume();
        while (const auto piece = one.handle.try_next()) one.drawn.push_back(piece->piece.token);
        one.has_ended = one.handle.state() == RequestState::ended;
        if (const Status status = one.handle.status(); !status) one.error = status.error();
        if (one.has_ended && one.beams) again += one.handle.figures().preemptions;
      }
    }
    for (Asked& one : asked) {
      INFO("round " << round << ", prompt of " << one.prompt.size() << ", " << one.tokens << " tokens, beams " << (one.beams ? one.beams->beams : 0));
      if (one.error) {
        CHECK(one.is_cancelled);
        CHECK(one.handle.take_beams().empty());
        continue;
      }
      ++finished;
      while (const auto piece = one.handle.try_next()) one.drawn.push_back(piece->piece.token);
      if (one.beams) {
        CHECK(one.drawn.empty());
        CHECK(one.handle.figures().tokens == one.tokens);
        check_same(one.handle.take_beams(), alone(engine, one.prompt, *one.beams));
        continue;
      }
      Session session = must(engine.session());
      must(session.append(one.prompt));
      Sampler greedy = sampling::chain().greedy().build();
      std::vector<Token> expected;
      for (const auto& piece : session.generate(greedy, {.max_tokens = one.tokens, .end_of_generation = EndOfGeneration::ignore})) {
        expected.push_back(must(Result<Piece>(piece)).token);
      }
      CHECK(one.drawn == expected);
    }
    const SchedulerFigures figures = scheduler.figures();
    CHECK(figures.finished + figures.cancelled == asked.size());
    CHECK(scheduler.idle());
    preempted += events[RequestEvent::Kind::preempted];
    asked.clear();
    engine.trim();
    CHECK(engine.kv_figures().used_bytes == 0);
  }
  INFO(finished << " finished, " << preempted << " preempted, searches " << again << " times");
  CHECK(finished > kRounds * 10);
  CHECK(preempted > kRounds);
  CHECK(again > kRounds / 2);  // or the rooms are too large to show anything
}

TEST_CASE("a search's pages are counted: the plan never meets a pool that has none", "[scheduler][beams]") {
  const EngineOptions roomy{.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}, .context = 160};
  const std::uint64_t page = must(load_story(roomy).session()).kv().layout().bytes_per_token() * 16;
  EngineOptions options = roomy;
  options.kv_budget = 20 * page;
  const Engine engine = load_story(options);
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.headroom = 0.0}}));
  std::vector<RequestHandle> searches, others;
  for (std::uint64_t i = 0; i < 3; ++i) {
    searches.push_back(must(scheduler.submit({.prompt = make_tokens(i, 20, 90), .beams = BeamOptions{.beams = 4, .max_tokens = 40, .end_of_generation = EndOfGeneration::ignore}})));
    others.push_back(must(scheduler.submit({.prompt = make_tokens(i, 30, 90), .generate = {.max_tokens = 60, .end_of_generation = EndOfGeneration::ignore}})));
  }
  while (must(scheduler.step())) CHECK(engine.kv_figures().used_bytes <= options.kv_budget);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(searches[i].take_beams().size() == 4);
    CHECK(others[i].figures().tokens == 60);
  }
  const SchedulerFigures figures = scheduler.figures();
  CHECK(figures.finished == 6);
  CHECK(figures.recomputed > 0);  // or there was room for all
  CHECK(figures.out_of_room == 0);
}

TEST_CASE("a search is cancelled at every step, and leaves nothing", "[scheduler][beams]") {
  const Engine engine = load_story({.context = 128});
  const BeamOptions options{.beams = 4, .max_tokens = 10, .end_of_generation = EndOfGeneration::ignore};
  for (int steps = 0; steps < 14; ++steps) {
    Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 8}}));
    std::stop_source stop;
    BeamOptions stopped = options;
    stopped.stop = stop.get_token();
    RequestHandle one = must(scheduler.submit({.prompt = make_tokens(1, 20, 90), .beams = stopped}));
    RequestHandle other = must(scheduler.submit({.prompt = make_tokens(2, 12, 90), .beams = options}));
    for (int i = 0; i < steps; ++i) (void)must(scheduler.step());
    const bool had_ended = one.state() == RequestState::ended;
    if (steps % 2 == 0) one.cancel();
    else stop.request_stop();
    while (must(scheduler.step())) {
    }
    const Status status = one.status();
    REQUIRE(status.has_value() == had_ended);
    if (!status) CHECK(status.error().code() == ErrorCode::cancelled);
    CHECK(one.take_beams().empty() != had_ended);
    check_same(other.take_beams(), alone(engine, make_tokens(2, 12, 90), options));
    CHECK(engine.kv_figures().used_bytes == 0);
  }
}

TEST_CASE("a search that cannot be is refused, and so is an adapter, by name", "[scheduler][beams]") {
  const Engine engine = load_story({.context = 64});
  Scheduler scheduler = must(Scheduler::create(engine));
  const auto error_of = [&](Request request) { return scheduler.submit(std::move(request)).error(); };
  const BeamOptions beams{.beams = 2, .max_tokens = 4};
  CHECK(error_of({.prompt = {1}, .beams = BeamOptions{.beams = 0}}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.prompt = {1}, .beams = BeamOptions{.max_tokens = 65}}).code() == ErrorCode::cache_full);
  CHECK(error_of({.prompt = {1}, .sampler = sampling::chain().greedy().build(), .beams = beams}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.prompt = {1}, .generate = {.max_tokens = 3}, .beams = beams}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.prompt = {1}, .samples = 2, .beams = beams}).code() == ErrorCode::invalid_argument);
  CHECK(error_of({.prompt = {1}, .session_options = {.kv = {.kind = KvKind::contiguous}}, .beams = beams}).code() == ErrorCode::unsupported);
  CHECK(error_of({.prompt = {1}, .adapters = std::vector<AdapterUse>{{}}}).code() == ErrorCode::invalid_argument);  // an empty handle
  CHECK(scheduler.figures().submitted == 0);
}

}  // namespace test_beam_requests
