// Contract 7: a request gives the same tokens in a batch as alone, whatever the policy, the chunks, preemption, and the
// cancelling or failing of its neighbours; and every request ends once.
// TESSERA_TEST_STEPS: steps of random requests at least; without it a few thousand.
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include <unistd.h>

#include <tessera/decoding/drafters.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"
#include "sanitized.hpp"

namespace test_scheduler {

using namespace tessera;
using namespace tessera::test;

namespace {

Engine load_story(EngineOptions options = {}) {
  if (options.threads == 0) options.threads = 2;
  return load_stories(options, "tessera-stories-draft");
}

// A clock that a test moves: each look is a millisecond later.
struct FakeClock {
  double now = 0.0;
  std::function<double()> function() {
    return [this] { return now += 1e-3; };
  }
};

struct Wish {
  std::vector<Token> prompt = {};
  std::size_t max_tokens = 0;
  int sampler = 0;
  std::uint64_t seed = 0;
  std::uint32_t samples = 1;
  std::vector<Token> stop_tokens = {};
  int drafter = 0;  // 0: none
};

Sampler sampler_of(const Wish& wish) {
  switch (wish.sampler) {
    case 0: return sampling::chain().greedy().build();
    case 1: return sampling::chain().temperature(1.2f).seed(wish.seed).build();
    case 2: return sampling::chain().penalties({.repetition = 1.2f}).temperature(0.8f).top_k(20).top_p(0.9f).seed(wish.seed).build();
    default: return sampling::chain().temperature(1.0f).mirostat({}).seed(wish.seed).build();
  }
}
GenerateOptions options_of(const Wish& wish) {
  return {.max_tokens = wish.max_tokens, .stop_tokens = wish.stop_tokens, .end_of_generation = EndOfGeneration::ignore};
}

using Answer = std::vector<std::pair<Token, std::string>>;

Answer alone(const Engine& engine, const Wish& wish, std::uint32_t sample) {
  Session session = must(engine.session());
  must(session.append(wish.prompt));
  Sampler sampler = sampler_of(wish);
  sampler.reseed(sampler.seed(), sampler.stream() + sample);
  Answer answer;
  for (const auto& piece : session.generate(sampler, options_of(wish))) {
    if (!piece) FAIL(piece.error().text());
    answer.emplace_back(piece->token, piece->text);
  }
  return answer;
}

std::shared_ptr<const Drafter> drafter_of(const Wish& wish) {
  switch (wish.drafter) {
    case 1: return must(ngram_drafter({.shortest = 1}));
    case 2: return must(suffix_drafter());
    case 3: return must(early_exit_drafter(1));
    default: return nullptr;
  }
}

Request request_of(const Wish& wish) {
  Request request{.prompt = wish.prompt, .sampler = sampler_of(wish), .generate = options_of(wish), .samples = wish.samples};
  request.generate.speculate = {.drafter = drafter_of(wish), .max_drafts = 4, .length = DraftLength::longest};
  return request;
}

class Wishes {
 public:
  Wishes(std::uint32_t seed, std::size_t vocab) : random_(seed), vocab_(vocab) {}
  Wish any(std::size_t prompt, std::size_t tokens) {
    Wish wish{.max_tokens = 1 + random_() % tokens, .sampler = static_cast<int>(random_() % 4), .seed = random_()};
    const std::size_t n = 1 + random_() % prompt;
    // Some begin alike.
    const std::uint32_t family = random_() % 3;
    for (std::size_t i = 0; i < n; ++i) {
      wish.prompt.push_back(static_cast<Token>(family == 0 ? (i * 7 + 3) % vocab_ : random_() % vocab_));
    }
    if (random_() % 4 == 0) wish.stop_tokens = {static_cast<Token>(random_() % vocab_)};
    if (random_() % 6 == 0) wish.samples = 1 + random_() % 3;
    if (random_() % 3 == 0) wish.drafter = 1 + static_cast<int>(random_() % 3);
    return wish;
  }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
  std::size_t vocab_;
};

std::vector<PolicyPtr> policies() {
  return {first_come(), by_priority(), shortest_first(), earliest_deadline(), fair_by_tenant(), prefix_first()};
}

}  // namespace

TEST_CASE("a request's pieces come by next() alone, as generate() gives them", "[scheduler]") {
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine));
  Wishes wishes(1, engine.spec().vocab_size);
  for (int i = 0; i < 6; ++i) {
    const Wish wish = wishes.any(40, 20);
    RequestHandle request = must(scheduler.submit(request_of(wish)));
    std::vector<Answer> answers(wish.samples);
    while (auto piece = request.next()) answers[piece->sample].emplace_back(piece->piece.token, piece->piece.text);
    must(request.status());
    for (std::uint32_t sample = 0; sample < wish.samples; ++sample) CHECK(answers[sample] == alone(engine, wish, sample));
    CHECK(request.state() == RequestState::ended);
    CHECK(request.figures().tokens > 0);
  }
  CHECK(scheduler.idle());
  CHECK(engine.kv_figures().used_bytes == 0);
}

TEST_CASE("random requests give the tokens that they give alone, and all that is left adds up", "[scheduler]") {
  std::uint64_t preempted = 0, recomputed = 0, suspended = 0, finished = 0;
  // The threads that a sanitizer can see take part in every round: the rest of them vary the room and the limits.
  const char* const given = std::getenv("TESSERA_TEST_STEPS");
  const std::uint64_t least_steps = given != nullptr ? std::strtoull(given, nullptr, 10) : 0;
  constexpr int kRounds = tests::kSanitized ? 8 : 24;
  std::uint64_t rounds = 0, steps = 0;
  for (int round = 0; round < kRounds || steps < least_steps; ++round, ++rounds) {
    const bool has_file = round % 3 == 2;
    EngineOptions options{.kv = {.page_tokens = 16}, .context = 200, .step_rows = 48};
    const std::filesystem::path file = std::filesystem::temp_directory_path() / ("tessera-scheduler-" + std::to_string(::getpid()) + "-" + std::to_string(round));
    {
      const Engine measure = load_story(options);
      const std::uint64_t page = must(measure.session()).kv().layout().bytes_per_token() * 16;
      options.kv_budget = page * static_cast<std::uint64_t>(round % 2 == 0 ? 24 : 14);
      if (has_file) {
        options.kv_file = file;
        options.kv_file_bytes = 200 * page;
      }
    }
    const Engine engine = load_story(options);
    FakeClock clock;
    Wishes wishes(static_cast<std::uint32_t>(round), engine.spec().vocab_size);
    auto& random = wishes.random();
    std::map<RequestEvent::Kind, std::uint64_t> events;
    Scheduler scheduler = must(Scheduler::create(
        engine, {.policy = policies()[static_cast<std::size_t>(round) % 6],
                 .limits = {.seconds = 0.01, .rows = static_cast<std::uint32_t>(8 + random() % 40),
                            .max_running = static_cast<std::uint32_t>(1 + random() % 12),
                            .batching = round % 8 == 5 ? Batching::fixed : round % 8 == 6 ? Batching::dynamic : Batching::continuous,
                            .max_wait = 0.02,
                            .headroom = round % 2 == 0 ? 0.0 : 0.5},
                 .max_unread = 1 + random() % 5,
                 .clock = clock.function(),
                 .on_event = [&](const RequestEvent& event) { ++events[event.kind]; }}));
    struct Asked {
      Wish wish;
      std::optional<RequestHandle> handle = {};
      std::vector<Answer> answers = {};
      bool reads_slowly = false, is_cancelled = false, has_ended = false;
      std::optional<Error> error = {};
    };
    std::vector<Asked> asked;
    const std::size_t total = 24;
    std::size_t refused = 0;
    const auto all_ended = [&] {
      return asked.size() + refused == total && std::ranges::all_of(asked, [](const Asked& one) { return one.has_ended; });
    };
    const auto begin = std::chrono::steady_clock::now();
    while (!all_ended()) {
      REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // or a request would never end
      if (asked.size() + refused < total && random() % 3 == 0) {
        Asked one{.wish = wishes.any(60, 90)};
        Request request = request_of(one.wish);
        request.priority = static_cast<std::int32_t>(random() % 3);
        request.deadline = 0.5 + static_cast<double>(random() % 100) / 50.0;
        request.tenant = random() % 2 == 0 ? "a" : "b";
        auto handle = scheduler.submit(std::move(request));
        if (!handle) {
          CHECK(handle.error().code() == ErrorCode::invalid_argument);  // can never fit
          ++refused;
        } else {
          one.handle.emplace(*std::move(handle));
          one.answers.resize(one.wish.samples);
          one.reads_slowly = random() % 4 == 0;
          asked.push_back(std::move(one));
        }
      }
      const auto more = scheduler.step();
      ++steps;
      if (!more) FAIL(more.error().text());
      if (!*more) std::this_thread::sleep_for(std::chrono::microseconds(50));  // pages on their way to the file are not free yet
      for (Asked& one : asked) {
        if (one.has_ended || (one.reads_slowly && random() % 8 != 0)) continue;
        if (!one.is_cancelled && random() % 400 == 0) {
          one.handle->cancel();
          one.is_cancelled = true;
        }
        if (random() % 300 == 0) one.handle->pause();
        if (random() % 20 == 0) one.handle->resume();
        while (auto piece = one.handle->try_next()) one.answers[piece->sample].emplace_back(piece->piece.token, piece->piece.text);
        one.has_ended = one.handle->state() == RequestState::ended;
        if (const Status status = one.handle->status(); !status) one.error = status.error();
      }
    }
    REQUIRE(asked.size() + refused == total);
    for (const Asked& one : asked) {
      INFO("round " << round << ", prompt of " << one.wish.prompt.size() << ", " << one.wish.max_tokens << " tokens, samples " << one.wish.samples);
      REQUIRE(one.has_ended);
      if (one.error) {
        CHECK(one.is_cancelled);
        CHECK(one.error->code() == ErrorCode::cancelled);
      }
      for (std::uint32_t sample = 0; sample < one.wish.samples; ++sample) {
        const Answer expected = alone(engine, one.wish, sample);
        const Answer& got = one.answers[sample];
        if (one.error) CHECK(Answer(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(std::min(expected.size(), got.size()))) == got);
        else CHECK(got == expected);
      }
    }
    const SchedulerFigures figures = scheduler.figures();
    CHECK(figures.submitted == asked.size());
    CHECK(figures.finished + figures.cancelled + figures.failed == asked.size());
    CHECK(figures.failed == 0);
    CHECK(figures.running == 0);
    CHECK(figures.waiting == 0);
    CHECK(events[RequestEvent::Kind::queued] == asked.size());
    CHECK(events[RequestEvent::Kind::finished] == asked.size());
    CHECK(scheduler.idle());
    std::uint64_t tokens = 0;
    for (const Asked& one : asked) {
      for (const Answer& answer : one.answers) tokens += answer.size();
    }
    CHECK(figures.tokens >= tokens);  // a cancelled one's last pieces may not have been read
    preempted += events[RequestEvent::Kind::preempted];
    recomputed += figures.recomputed;
    suspended += figures.suspended;
    finished += figures.finished;
    asked.clear();
    engine.trim();  // waits for pages that are being written
    CHECK(engine.kv_figures().used_bytes == 0);
  }
  INFO(steps << " steps, " << finished << " finished, " << preempted << " preempted, " << recomputed << " recomputed, " << suspended << " suspended");
  if (given != nullptr) WARN(steps << " steps, " << finished << " finished, " << preempted << " preempted");
  CHECK(finished > rounds * 25 / 2);
  CHECK(preempted > rounds * 5 / 6);  // or the rooms are too large to show anything
  CHECK(recomputed > rounds * 2 / 5);
  CHECK(suspended > rounds / 5);
}

TEST_CASE("64 threads that submit, read and cancel get their own tokens from one driver", "[scheduler]") {
  const Engine engine = load_story({.context = 128});
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.max_running = 16}, .max_unread = 4}));
  std::vector<Wish> wishes;
  std::vector<Answer> expected, got(64);
  Wishes made(99, engine.spec().vocab_size);
  for (int i = 0; i < 64; ++i) {
    wishes.push_back(made.any(30, 15));
    wishes.back().samples = 1;
    expected.push_back(alone(engine, wishes.back(), 0));
  }
  std::vector<std::string> errors(64);
  {
    Driver driver = must(Driver::start(scheduler));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 64; ++i) {
      threads.emplace_back([&, i] {
        auto handle = scheduler.submit(request_of(wishes[i]));
        if (!handle) {
          errors[i] = handle.error().text();
          return;
        }
        if (i % 8 == 7) return;  // goes away at once
        while (auto piece = handle->next()) got[i].emplace_back(piece->piece.token, piece->piece.text);
        if (const Status status = handle->status(); !status) errors[i] = status.error().text();
      });
    }
    for (std::thread& thread : threads) thread.join();
    must(driver.wait_until_idle());
  }
  for (std::size_t i = 0; i < 64; ++i) {
    INFO(i);
    CHECK(errors[i].empty());
    if (i % 8 != 7) CHECK(got[i] == expected[i]);
  }
  CHECK(engine.kv_figures().used_bytes == 0);
}

TEST_CASE("a request whose stop is requested ends, though it is paused and its driver sleeps", "[scheduler]") {
  using namespace std::chrono_literals;
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine));
  Driver driver = must(Driver::start(scheduler));
  std::stop_source source;
  RequestHandle handle = must(scheduler.submit(
      {.prompt = {1, 2, 3}, .generate = {.max_tokens = 200, .end_of_generation = EndOfGeneration::ignore, .stop = source.get_token()}}));
  handle.pause();
  std::this_thread::sleep_for(50ms);  // it has been set aside, as a rule
  source.request_stop();
  for (int i = 0; i < 1000 && handle.state() != RequestState::ended; ++i) std::this_thread::sleep_for(10ms);
  CHECK(handle.state() == RequestState::ended);
  CHECK(handle.status().error().code() == ErrorCode::cancelled);
  CHECK(handle.finish_reason() == FinishReason::cancelled);
}

TEST_CASE("things are destroyed in every order", "[scheduler]") {
  std::optional<Engine> engine = load_story({.context = 128});
  const Wish wish{.prompt = {1, 2, 3, 4}, .max_tokens = 20};
  SECTION("the scheduler before its handles") {
    std::optional<Scheduler> scheduler = must(Scheduler::create(*engine));
    RequestHandle request = must(scheduler->submit(request_of(wish)));
    must(scheduler->step());
    scheduler.reset();
    while (request.next()) {}
    CHECK(request.status().error().code() == ErrorCode::cancelled);
    CHECK(request.state() == RequestState::ended);
  }
  SECTION("the engine's handle before the scheduler, and that before its driver") {
    std::optional<Scheduler> scheduler = must(Scheduler::create(*engine));
    engine.reset();
    std::optional<Driver> driver = must(Driver::start(*scheduler));
    RequestHandle request = must(scheduler->submit(request_of(wish)));
    (void)request.next();
    scheduler.reset();
    driver.reset();
    while (request.try_next()) {
    }
    CHECK(request.state() == RequestState::ended);
  }
}

TEST_CASE("what cannot be served is refused with the reason", "[scheduler]") {
  const Engine engine = load_story({.context = 64});
  FakeClock clock;
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.max_running = 3}, .max_waiting = 2, .clock = clock.function()}));
  const auto code_of = [&](Request request) { return scheduler.submit(std::move(request)).error().code(); };
  CHECK(code_of({.prompt = {}}) == ErrorCode::invalid_argument);
  CHECK(code_of({.prompt = {-1}}) == ErrorCode::invalid_argument);
  CHECK(code_of({.prompt = std::vector<Token>(64, 1)}) == ErrorCode::invalid_argument);
  CHECK(code_of({.prompt = {1}, .samples = 0}) == ErrorCode::invalid_argument);
  CHECK(code_of({.prompt = {1}, .sampler = sampling::chain().top_p(7.0f).build()}) == ErrorCode::invalid_argument);
  CHECK(code_of({.prompt = {1}, .deadline = 1e-9, .if_late = IfLate::refuse}) == ErrorCode::too_late);
  std::vector<RequestHandle> handles;
  const auto submit = [&](int n) {
    for (int i = 0; i < n; ++i) handles.push_back(must(scheduler.submit({.prompt = {1, 2}, .generate = {.max_tokens = 3}})));
  };
  submit(5);  // three places, two that wait
  CHECK(code_of({.prompt = {1}}) == ErrorCode::busy);
  CHECK(must(scheduler.step()));  // three run
  const auto busy = scheduler.submit({.prompt = {1}});
  CHECK(busy.error().code() == ErrorCode::busy);
  CHECK(busy.error().message().find("try again") != std::string::npos);
  scheduler.drain();
  CHECK(code_of({.prompt = {1}}) == ErrorCode::invalid_state);
  for (RequestHandle& handle : handles) {
    while (handle.next()) {}
    must(handle.status());
  }
  CHECK(scheduler.idle());
  CHECK(Scheduler::create(engine, {.limits = {.max_running = 0}}).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("a request goes on from a session, and gives it back", "[scheduler]") {
  const Engine engine = load_story({.context = 128});
  Session system = must(engine.session());
  must(system.append(std::vector<Token>{5, 6, 7, 8, 9}));
  Scheduler scheduler = must(Scheduler::create(engine));
  const auto answer = [&](RequestHandle& handle) {
    std::vector<Token> tokens;
    while (auto piece = handle.next()) tokens.push_back(piece->piece.token);
    must(handle.status());
    return tokens;
  };
  RequestHandle first = must(scheduler.submit({.prompt = {1, 2}, .session = must(system.fork()), .generate = {.max_tokens = 5, .end_of_generation = EndOfGeneration::ignore}, .session_at_end = SessionAtEnd::keep}));
  const auto tokens = answer(first);
  std::optional<Session> back = first.take_session();
  REQUIRE(back.has_value());
  CHECK(back->tokens().size() == 5 + 2 + 5);
  CHECK_FALSE(first.take_session().has_value());
  // And on, without a prompt: the pending token is computed.
  RequestHandle second = must(scheduler.submit({.prompt = {}, .session = std::move(*back), .generate = {.max_tokens = 4, .end_of_generation = EndOfGeneration::ignore}}));
  auto all = tokens;
  for (const Token token : answer(second)) all.push_back(token);

  Session whole = must(system.fork());
  must(whole.append(std::vector<Token>{1, 2}));
  Sampler greedy = sampling::chain().greedy().build();
  std::vector<Token> expected;
  for (const auto& piece : whole.generate(greedy, {.max_tokens = 9, .end_of_generation = EndOfGeneration::ignore})) expected.push_back(must(piece).token);
  CHECK(all == expected);
}

TEST_CASE("a callback gets the pieces, and may throw", "[scheduler]") {
  const Engine engine = load_story({.context = 64});
  Scheduler scheduler = must(Scheduler::create(engine));
  std::vector<Token> got;
  RequestHandle good = must(scheduler.submit({.prompt = {1, 2},
                                              .generate = {.max_tokens = 6},
                                              .on_piece = [&](const RequestPiece& piece) { got.push_back(piece.piece.token); }}));
  RequestHandle bad = must(scheduler.submit({.prompt = {1, 2}, .generate = {.max_tokens = 6}, .on_piece = [](const RequestPiece&) {
                                               throw std::runtime_error("no more");
                                             }}));
  while (must(scheduler.step())) {
  }
  CHECK(got.size() == 6);
  CHECK_FALSE(good.try_next().has_value());
  must(good.status());
  CHECK_FALSE(bad.try_next().has_value());
  CHECK(bad.status().error().code() == ErrorCode::callback_failed);
}

}  // namespace test_scheduler
