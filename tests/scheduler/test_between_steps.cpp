// A host's own work on the engine between two steps of a scheduler.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"

namespace test_between_steps {

using namespace tessera;
using namespace tessera::test;

namespace {

Request plain(std::size_t tokens) {
  Request request;
  request.prompt = {1, 2, 3};
  request.generate = {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore};
  return request;
}

}  // namespace

TEST_CASE("work between steps runs while no step does, and waits for one step and not for all", "[scheduler]") {
  const Engine engine = must(Engine::load(source_dir() / "models/tessera-stories-draft.gguf", {.threads = 1}));
  // A step asks for the time when it begins and when it ends: so many steps have been begun.
  std::atomic<std::uint64_t> asked{0};
  Scheduler scheduler = must(Scheduler::create(engine, {.max_unread = 4096, .clock = [&] { return static_cast<double>(++asked); }}));
  std::vector<RequestHandle> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(must(scheduler.submit(plain(480))));
  Driver driver = must(Driver::start(scheduler));
  std::uint64_t turns = 0, soon = 0;
  while (!scheduler.idle() && turns < 100) {
    const std::uint64_t before = scheduler.figures().steps;
    std::uint64_t began = 0, after = 0, asked_before = 0, asked_after = 0;
    must(scheduler.between_steps([&] {
      began = scheduler.figures().steps;
      asked_before = asked;
      Session session = must(engine.session());
      must(session.append(std::vector<Token>(20, 1)));
      asked_after = asked;
      after = scheduler.figures().steps;
    }));
    CHECK(began == after);
    CHECK(asked_before == asked_after);
    soon += began - before <= 2 ? 1 : 0;  // the step that runs, and one that came before the work did
    ++turns;
  }
  CHECK(turns == 100);
  CHECK(soon >= 80);  // a busy machine may stop this thread before it waits
  for (RequestHandle& request : requests) request.cancel();
  must(driver.wait_until_idle());
}

TEST_CASE("work between steps that throws, or is none, is an error of the call, and steps go on", "[scheduler]") {
  const Engine engine = must(Engine::load(source_dir() / "models/tessera-stories-draft.gguf", {.threads = 1}));
  Scheduler scheduler = must(Scheduler::create(engine));
  const Status thrown = scheduler.between_steps([] { throw std::runtime_error("enough"); });
  REQUIRE(!thrown);
  CHECK(thrown.error().code() == ErrorCode::callback_failed);
  CHECK(thrown.error().text().find("enough") != std::string::npos);
  CHECK(scheduler.between_steps({}).error().code() == ErrorCode::callback_failed);
  CHECK(Scheduler().between_steps([] {}).error().code() == ErrorCode::invalid_state);
  // What would wait for itself.
  must(scheduler.between_steps([&] {
    CHECK(scheduler.step().error().code() == ErrorCode::invalid_state);
    CHECK(scheduler.between_steps([] {}).error().code() == ErrorCode::invalid_state);
  }));
  // A host that lets go of the scheduler in its work.
  Scheduler gone = must(Scheduler::create(engine));
  must(gone.between_steps([&] { gone = Scheduler(); }));
  RequestHandle request = must(scheduler.submit(plain(4)));
  std::size_t pieces = 0;
  while (request.next()) ++pieces;
  CHECK(pieces == 4);
}

}  // namespace test_between_steps
