// Request::on_ready: readers that have no thread to wait in.
#include <condition_variable>
#include <mutex>
#include <random>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"

namespace test_request_readers {

using namespace tessera;
using namespace tessera::test;

namespace {

using Answer = std::vector<std::pair<Token, std::string>>;

// The i-th of a family of requests.
Request request_of(const Engine& engine, std::size_t i) {
  std::mt19937 random(static_cast<std::uint32_t>(i));
  Request request{.prompt = {}, .sampler = sampling::chain().temperature(1.1f).seed(i).build()};
  for (std::size_t n = 1 + random() % 30; n > 0; --n) request.prompt.push_back(static_cast<Token>(random() % engine.spec().vocab_size));
  request.generate = {.max_tokens = 1 + random() % 20, .end_of_generation = EndOfGeneration::ignore};
  return request;
}

Answer alone(const Engine& engine, Request request) {
  Session session = must(engine.session());
  must(session.append(request.prompt));
  Answer answer;
  for (const auto& piece : session.generate(*request.sampler, request.generate)) answer.emplace_back(must(piece).token, must(piece).text);
  return answer;
}

}  // namespace

// A server's way: nobody waits in next(). Who is told reads until there is nothing, and looks again only when told again.
TEST_CASE("a reader that only looks when it is told misses nothing", "[scheduler]") {
  const Engine engine = load_stories({.context = 128, .threads = 2}, "tessera-stories-draft");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::size_t> ready;
  std::vector<std::size_t> told;
  const auto on_ready = [&](std::size_t i) {
    return [&, i] {
      const std::lock_guard lock(mutex);
      ready.push_back(i);
      ++told[i];
      changed.notify_one();
    };
  };
  std::optional<Scheduler> scheduler = must(Scheduler::create(engine, {.max_unread = 3}));
  std::vector<std::optional<RequestHandle>> handles;
  constexpr std::size_t kRequests = 24;
  told.resize(kRequests + 1);
  for (std::size_t i = 0; i < kRequests; ++i) {
    Request request = request_of(engine, i);
    request.on_ready = on_ready(i);
    handles.emplace_back(must(scheduler->submit(std::move(request))));
  }
  std::vector<Answer> answers(kRequests);
  std::vector<std::size_t> looks(kRequests);
  std::size_t ended = 0, cancelled = 0;
  {
    Driver driver = must(Driver::start(*scheduler));
    while (ended < kRequests) {
      std::unique_lock lock(mutex);
      REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return !ready.empty(); }));
      const std::size_t i = ready.back();
      ready.pop_back();
      lock.unlock();
      if (!handles[i]) continue;  // told once more, behind its end
      ++looks[i];
      while (auto piece = handles[i]->try_next()) {
        answers[i].emplace_back(piece->piece.token, piece->piece.text);
        if (i % 8 == 7 && answers[i].size() == 1) handles[i]->cancel();
      }
      if (handles[i]->state() != RequestState::ended) continue;
      while (auto piece = handles[i]->try_next()) answers[i].emplace_back(piece->piece.token, piece->piece.text);  // came between the two looks
      if (const Status status = handles[i]->status(); !status) {
        CHECK(status.error().code() == ErrorCode::cancelled);
        ++cancelled;
      }
      handles[i].reset();
      ++ended;
    }
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    INFO("request " << i);
    CHECK(told[i] >= looks[i]);
    CHECK(told[i] <= answers[i].size() + 2);
    const Answer expected = alone(engine, request_of(engine, i));
    REQUIRE(answers[i].size() <= expected.size());
    if (i % 8 == 7) CHECK((answers[i].size() >= 1 && std::ranges::equal(answers[i], std::span(expected).first(answers[i].size()))));
    else CHECK(answers[i] == expected);
  }
  CHECK(cancelled <= 3);

  // The end of the scheduler is told too.
  Request last = request_of(engine, 0);
  last.on_ready = on_ready(kRequests);
  RequestHandle handle = must(scheduler->submit(std::move(last)));
  scheduler.reset();
  CHECK(told[kRequests] == 1);
  CHECK_FALSE(handle.try_next().has_value());
  CHECK(handle.status().error().code() == ErrorCode::cancelled);
}

TEST_CASE("a reader is told how much of its prompt is computed, if it asks for that", "[scheduler]") {
  const Engine engine = load_stories({.kv = {.page_tokens = 16}, .context = 128, .threads = 1}, "tessera-stories-draft");
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 20}}));
  const auto progress_of = [&](bool tells) {
    Request request = request_of(engine, 1);
    request.prompt.resize(90, 5);
    request.generate.max_tokens = 2;
    request.tells_progress = tells;
    bool is_told = false;
    request.on_ready = [&] { is_told = true; };
    RequestHandle handle = must(scheduler.submit(std::move(request)));
    std::vector<std::uint64_t> computed;
    double before = handle.figures().progressed;
    CHECK(before == -1.0);
    while (handle.state() != RequestState::ended) {
      must(scheduler.step());
      if (!std::exchange(is_told, false)) continue;
      while (handle.try_next()) {}
      const RequestFigures figures = handle.figures();
      CHECK(figures.prompt_tokens == 90);
      CHECK(figures.progressed >= before);
      before = figures.progressed;
      if (computed.empty() || computed.back() != figures.computed_tokens) computed.push_back(figures.computed_tokens);
    }
    computed.insert(computed.begin(), handle.figures().reused_tokens);
    return computed;
  };
  CHECK(progress_of(true) == std::vector<std::uint64_t>{0, 20, 40, 60, 80, 90});
  const auto again = progress_of(true);  // its beginning is there
  CHECK(again.front() > 0);
  CHECK(again.at(1) > again.front());
  CHECK(again.back() == 90);
  const auto quiet = progress_of(false);  // told of pieces alone
  CHECK(std::vector(quiet.begin() + 1, quiet.end()) == std::vector<std::uint64_t>{90});
}

}  // namespace test_request_readers
