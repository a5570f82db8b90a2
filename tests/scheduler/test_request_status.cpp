// What a request's handle says when no piece comes, what waits, and whose fault it is.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"

namespace test_request_status {

using namespace tessera;
using namespace tessera::test;

namespace {

Engine load_story(EngineOptions options = {}) {
  if (options.threads == 0) options.threads = 1;
  return must(Engine::load(source_dir() / "models/tessera-stories-draft.gguf", options));
}

Request plain(std::size_t tokens, std::vector<Token> prompt = {1, 2, 3}) {
  Request request;
  request.prompt = std::move(prompt);
  request.generate = {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore};
  return request;
}

// Fails where the n-th token is drawn.
Sampler failing(int n) {
  return sampling::chain()
      .stage([n, drawn = 0](sampling::Candidates&, const sampling::Context&) mutable -> Status {
        if (++drawn < n) return {};
        return Error(ErrorCode::invalid_state, "enough");
      })
      .seed(1)
      .build();
}

std::size_t count_pieces(RequestHandle& request) {
  std::size_t pieces = 0;
  while (request.next()) ++pieces;
  return pieces;
}

}  // namespace

TEST_CASE("the short loop of the header is right, whether the request ends well or fails", "[scheduler]") {
  const Engine engine = load_story();
  for (const int fails_at : {0, 1, 4}) {
    CAPTURE(fails_at);
    auto scheduler = Scheduler::create(engine, {.policy = fair_by_tenant()});
    Request wanted = plain(6);
    if (fails_at > 0) wanted.sampler = failing(fails_at);
    auto request = scheduler->submit(std::move(wanted));
    std::string text, error;
    while (auto piece = request->next()) text += piece->piece.text + "|";
    if (auto status = request->status(); !status) error = status.error().text();
    CHECK(request->state() == RequestState::ended);
    CHECK(std::ranges::count(text, '|') == (fails_at == 0 ? 6 : fails_at - 1));
    CHECK(error == (fails_at == 0 ? "" : "enough"));
    CHECK(request->finish_reason() == (fails_at == 0 ? FinishReason::max_tokens : FinishReason::error));
    CHECK_FALSE(request->next());
    CHECK(request->status().has_value() == (fails_at == 0));  // it stays
  }
}

TEST_CASE("samples of a request that failed have a reason each", "[scheduler]") {
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine));
  Request wanted = plain(5);
  wanted.samples = 2;
  RequestHandle request = must(scheduler.submit(std::move(wanted)));
  REQUIRE(request.next());
  CHECK(request.finish_reason(1) == FinishReason::none);
  request.cancel();
  (void)count_pieces(request);
  CHECK(request.status().error().code() == ErrorCode::cancelled);
  CHECK(request.finish_reason(0) == FinishReason::cancelled);
  CHECK(request.finish_reason(1) == FinishReason::cancelled);
}

TEST_CASE("next() of a paused request returns at once and says so, with a driver and without", "[scheduler]") {
  const Engine engine = load_story();
  for (const bool is_driven : {false, true}) {
    Scheduler scheduler = must(Scheduler::create(engine));
    std::optional<Driver> driver;
    if (is_driven) driver = must(Driver::start(scheduler));
    RequestHandle request = must(scheduler.submit(plain(40)));
    REQUIRE(request.next());
    request.pause();
    std::size_t pieces = 1 + count_pieces(request);  // those that were there already
    CHECK(pieces <= 40);
    CHECK((request.state() == RequestState::paused || pieces == 40));
    must(request.status());
    request.resume();
    pieces += count_pieces(request);
    CHECK(request.state() == RequestState::ended);
    CHECK(pieces == 40);
  }
}

TEST_CASE("a scheduler is not idle while a step computes its only request", "[scheduler]") {
  const Engine engine = load_story();
  auto scheduler = must(Scheduler::create(engine));
  std::vector<bool> was_idle;
  Request wanted = plain(2);
  wanted.sampler = sampling::chain()
                       .stage([&](sampling::Candidates&, const sampling::Context&) -> Status {
                         was_idle.push_back(scheduler.idle());
                         return {};
                       })
                       .greedy()
                       .build();
  auto request = must(scheduler.submit(std::move(wanted)));
  CHECK(count_pieces(request) == 2);
  CHECK(was_idle == std::vector<bool>{false, false});
  CHECK(scheduler.idle());
}

TEST_CASE("wait_until_idle() does not wait for a reader, for resume(), or for itself", "[scheduler]") {
  const Engine engine = load_story();
  std::optional<Scheduler> scheduler = must(Scheduler::create(engine, {.max_unread = 4}));
  std::optional<Driver> driver = must(Driver::start(*scheduler));
  RequestHandle unread = must(scheduler->submit(plain(10)));
  const Status busy = driver->wait_until_idle();
  REQUIRE_FALSE(busy);
  CHECK(busy.error().code() == ErrorCode::busy);
  CHECK(count_pieces(unread) == 10);
  must(driver->wait_until_idle());

  RequestHandle paused = must(scheduler->submit(plain(200)));
  paused.pause();
  CHECK(driver->wait_until_idle().error().code() == ErrorCode::busy);
  paused.resume();
  CHECK(count_pieces(paused) == 200);
  must(driver->wait_until_idle());

  // From a callback: an error, and stop() that does not wait for its own thread.
  std::optional<Status> from_inside;
  std::atomic<bool> is_done = false;
  Request calls = plain(3);
  calls.on_piece = [&](const RequestPiece& piece) {
    if (piece.piece.finish == FinishReason::none) return;
    from_inside = driver->wait_until_idle();
    driver->stop();
    is_done = true;
  };
  RequestHandle calling = must(scheduler->submit(std::move(calls)));
  for (int i = 0; i < 10000 && !is_done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(is_done);
  driver.reset();
  CHECK(from_inside->error().code() == ErrorCode::invalid_state);

  // A clock that fails in every step is no reason to wait.
  {
    Scheduler timeless =
        must(Scheduler::create(engine, {.clock = []() -> double { throw std::runtime_error("no time"); }}));
    Driver other = must(Driver::start(timeless));
    RequestHandle request = must(timeless.submit(plain(3)));
    must(other.wait_until_idle());
    CHECK(count_pieces(request) == 3);
  }

  // A driver that was stopped, and a scheduler that goes while somebody waits.
  driver = must(Driver::start(*scheduler));
  RequestHandle left = must(scheduler->submit(plain(100)));
  left.pause();
  CHECK(driver->wait_until_idle().error().code() == ErrorCode::busy);
  driver->stop();
  CHECK(driver->wait_until_idle().error().code() == ErrorCode::invalid_state);
  driver = must(Driver::start(*scheduler));
  scheduler.reset();
  must(driver->wait_until_idle());
  CHECK(left.status().error().code() == ErrorCode::cancelled);
}

TEST_CASE("a request is measured by the context of its own session", "[scheduler]") {
  const Engine probe = load_story();
  const std::uint64_t page = must(probe.session()).kv().layout().page_bytes();
  const Engine engine = load_story({.context = 128, .kv_budget = 3 * page});
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.headroom = 1.0}}));
  // To the end of a small context there is room enough.
  Request small = plain(0, std::vector<Token>(40, 5));
  small.session_options.context = 60;
  RequestHandle request = must(scheduler.submit(std::move(small)));
  CHECK(count_pieces(request) == 21);
  CHECK(request.status().error().code() ==
        ErrorCode::cache_full);  // a full context is an error where nothing else ends it
  // A larger one than the engine's is none.
  Request large = plain(4, std::vector<Token>(200, 5));
  large.session_options.context = 256;
  const auto refused = scheduler.submit(std::move(large));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::invalid_argument);
  CHECK(refused.error().message().find("256") != std::string::npos);
  CHECK(refused.error().message().find("128") != std::string::npos);
}

TEST_CASE("a session that a Generation has is no request's", "[scheduler]") {
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine));
  Session session = must(engine.session());
  must(session.append(std::vector<Token>{1, 2, 3}));
  Sampler greedy = sampling::chain().greedy().build();
  Generation generation = session.generate(greedy, {.max_tokens = 5, .end_of_generation = EndOfGeneration::ignore});
  REQUIRE(generation.next());
  Request wanted = plain(2, {4});
  wanted.session = std::move(session);
  const auto refused = scheduler.submit(std::move(wanted));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::invalid_state);
  CHECK(refused.error().message().find("Generation") != std::string::npos);
}

TEST_CASE("what a host's callback throws is callback_failed, by its name, and the requests go on", "[scheduler]") {
  const Engine engine = load_story();
  for (const std::string name : {"SchedulerOptions::clock", "SchedulerOptions::on_event",
                                 "SchedulerOptions::on_kv_event", "Request::on_ready"}) {
    INFO(name);
    bool throws = false;
    const auto may_throw = [&](const char* which) {
      if (throws && name == which) throw std::runtime_error("tired");
    };
    double time = 0.0;
    Scheduler scheduler = must(Scheduler::create(
        engine, {.clock = [&] { return may_throw("SchedulerOptions::clock"), time += 1e-3; },
                 .on_event = [&](const RequestEvent&) { may_throw("SchedulerOptions::on_event"); },
                 .on_kv_event = [&](const KvEvent&) { may_throw("SchedulerOptions::on_kv_event"); }}));
    throws = true;
    Request wanted = plain(4, std::vector<Token>(70, 5));
    wanted.on_ready = [&] { may_throw("Request::on_ready"); };
    RequestHandle request = must(scheduler.submit(std::move(wanted)));
    std::size_t failed = 0;
    while (!scheduler.idle()) {
      if (const auto more = scheduler.step(); !more) {
        ++failed;
        CHECK(more.error().code() == ErrorCode::callback_failed);
        CHECK(more.error().message() == name + " threw: tired");
      }
    }
    CHECK(failed > 0);
    CHECK(count_pieces(request) == 4);
    must(request.status());
  }
  Scheduler scheduler = must(Scheduler::create(engine));
  Request wanted = plain(4);
  wanted.on_piece = [](const RequestPiece&) { throw 1; };
  RequestHandle request = must(scheduler.submit(std::move(wanted)));
  CHECK(count_pieces(request) == 0);
  CHECK(request.status().error().code() == ErrorCode::callback_failed);
  CHECK(request.status().error().message() == "Request::on_piece threw: an exception of an unknown type");
}

}  // namespace test_request_status
