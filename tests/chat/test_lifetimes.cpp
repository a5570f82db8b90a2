// Objects that go, move or are replaced while others still use them: an error, or the answer goes on; never a read of
// what is gone.
#include <tessera/conversation/conversation.hpp>
#include <tessera/decoding/samples.hpp>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/tessera.hpp>

#include <future>
#include <optional>
#include <utility>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_lifetimes {

using namespace tessera;
using namespace tessera::test;
using namespace std::chrono_literals;

namespace {

const Engine& stories() {
  static const Engine engine =
      must(Engine::load(source_dir() / "models/tessera-stories.gguf", {.context = 128, .threads = 1}));
  return engine;
}
Sampler greedy() { return sampling::chain().greedy().build(); }
Session reading(const char* text = "Once upon a time") {
  Session session = must(stories().session());
  must(session.append(must(stories().tokenizer().encode(text))));
  return session;
}
ChatRequest hi() { return {.messages = {{.role = "user", .content = "Hi"}}}; }
GenerateOptions long_answer() { return {.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore}; }

template <class T>
void move_to_itself(T& object) {
  T& same = object;
  object = std::move(same);
}

}  // namespace

TEST_CASE("a session that goes or is replaced ends its generation with an error") {
  Sampler sampler = greedy();
  std::optional<Session> session = reading();
  const auto cut = [&](const auto& what) {
    return session->generate(sampler, long_answer(), [&](const Piece&) { return what(), true; });
  };
  CHECK(cut([&] { session.reset(); }).error().code() == ErrorCode::invalid_state);
  session = reading();
  CHECK(cut([&] { *session = Session(); }).error().code() == ErrorCode::invalid_state);

  session = reading();
  Generation generation = session->generate(sampler, long_answer());
  must(*generation.next());
  *session = reading("Another");
  CHECK(generation.next()->error().code() == ErrorCode::invalid_state);
  CHECK_FALSE(generation.next());
  CHECK(session->append({}));  // the new one is not in use

  // One that moves takes its generation along.
  Generation other = session->generate(sampler, long_answer());
  must(*other.next());
  Session moved = std::move(*session);
  must(*other.next());
  CHECK(moved.append({}).error().code() == ErrorCode::invalid_state);
}

TEST_CASE("a sampler that moves away ends the generation with an error") {
  Session session = reading();
  Sampler sampler = greedy();
  Generation generation = session.generate(sampler, long_answer());
  must(*generation.next());
  const Sampler moved = std::move(sampler);
  CHECK(generation.next()->error().code() == ErrorCode::invalid_state);
  CHECK_FALSE(generation.next());
  CHECK(session.append({}));
}

TEST_CASE("sessions, requests, answers and drafters outlive the handle of their engine") {
  std::optional<Engine> engine =
      must(Engine::load(source_dir() / "models/tessera-stories.gguf", {.context = 64, .threads = 1}));
  Session session = must(engine->session());
  Scheduler scheduler = must(Scheduler::create(*engine));
  Conversation talk = must(Conversation::create(*engine, hi()));
  const auto drafter = must(model_drafter(*engine));
  const Tokenizer tokenizer = engine->tokenizer();
  engine.reset();
  must(session.append(must(tokenizer.encode("Once"))));
  RequestHandle request = must(scheduler.submit({.prompt = {5}, .generate = {.max_tokens = 3}}));
  while (request.next()) {
  }
  CHECK(request.status());
  Sampler sampler = greedy();
  Answer answer = must(talk.answer(sampler, {.max_tokens = 3}));
  while (answer.next()) {
  }
  CHECK(answer.status());
  CHECK(session.generate(sampler, {.max_tokens = 3, .speculate = {.drafter = drafter}}, {}));
}

TEST_CASE("a handle outlives its scheduler, and a driver the scheduler's handle") {
  RequestHandle request;
  {
    Scheduler scheduler = must(Scheduler::create(stories()));
    request =
        must(scheduler.submit({.prompt = {5, 6}, .generate = long_answer(), .session_at_end = SessionAtEnd::keep}));
    must(scheduler.step());
  }
  while (request.next()) {
  }
  CHECK(request.status().error().code() == ErrorCode::cancelled);
  CHECK(request.state() == RequestState::ended);
  request.pause(), request.resume(), request.cancel();
  CHECK(request.take_beams().empty());

  std::optional<Scheduler> scheduler = must(Scheduler::create(stories()));
  Driver driver = must(Driver::start(*scheduler));
  request = must(scheduler->submit({.prompt = {5}, .generate = long_answer()}));
  Scheduler moved = std::move(*scheduler);
  scheduler.reset();
  std::size_t pieces = 0;
  while (request.next()) ++pieces;
  CHECK(pieces == 20);
  moved = Scheduler();
  CHECK(driver.wait_until_idle());
}

TEST_CASE("a callback destroys the handle that it speaks of, or the driver that runs it") {
  Scheduler scheduler = must(Scheduler::create(stories()));
  std::optional<RequestHandle> request;
  Request told{.prompt = {5}, .generate = long_answer()};
  told.on_ready = [&] { request.reset(); };
  request = must(scheduler.submit(std::move(told)));
  for (int i = 0; i < 40 && !scheduler.idle(); ++i) must(scheduler.step());
  CHECK(scheduler.idle());

  std::promise<void> destroyed;
  std::optional<Driver> driver;
  Request read{.prompt = {5}, .generate = long_answer()};
  read.on_piece = [&](const RequestPiece&) {
    if (!driver) return;
    driver.reset();
    destroyed.set_value();
  };
  Driver made = must(Driver::start(scheduler));
  driver = std::move(made);
  const RequestHandle kept = must(scheduler.submit(std::move(read)));
  REQUIRE(destroyed.get_future().wait_for(60s) == std::future_status::ready);
}

TEST_CASE("an answer outlives a conversation that is replaced, and says nothing to the new one") {
  Sampler sampler = greedy();
  Conversation talk = must(Conversation::create(stories(), hi()));
  Answer answer = must(talk.answer(sampler, {.max_tokens = 5}));
  talk = must(Conversation::create(stories(), hi()));
  while (answer.next()) {
  }
  CHECK(answer.status());
  CHECK(talk.request().messages.size() == 1);
}

TEST_CASE("what is moved to itself is there still, or empty") {
  Engine engine = stories();
  move_to_itself(engine);
  Session session = reading();
  move_to_itself(session);
  (void)session.append({});
  Sampler sampler = greedy();
  move_to_itself(sampler);
  session = reading();
  Generation generation = session.generate(sampler, {.max_tokens = 2});
  move_to_itself(generation);
  (void)generation.next();
  Scheduler scheduler = must(Scheduler::create(stories()));
  move_to_itself(scheduler);
  if (auto request = scheduler.submit({.prompt = {5}, .generate = {.max_tokens = 2}})) {
    move_to_itself(*request);
    (void)request->next();
  }
  scheduler = must(Scheduler::create(stories()));
  Driver driver = must(Driver::start(scheduler));
  move_to_itself(driver);
  (void)driver.wait_until_idle();
  Samples samples =
      must(Samples::start(reading(), sampling::chain().build(), {.samples = 2, .generate = {.max_tokens = 2}}));
  move_to_itself(samples);
  (void)samples.next();
  BeamSearch search = must(BeamSearch::start(reading(), {.beams = 2, .max_tokens = 2}));
  move_to_itself(search);
  (void)search.step();
  Conversation talk = must(Conversation::create(stories(), hi()));
  move_to_itself(talk);
  Sampler another = greedy();
  if (auto answer = talk.answer(another, {.max_tokens = 2})) {
    move_to_itself(*answer);
    (void)answer->next();
  }
  ModelFile file = must(ModelFile::open(source_dir() / "models/tessera-stories.gguf"));
  move_to_itself(file);
  (void)Engine::plan(file);
  Result<Session> result = reading();
  move_to_itself(result);
  CHECK(result);
}

}  // namespace test_lifetimes
