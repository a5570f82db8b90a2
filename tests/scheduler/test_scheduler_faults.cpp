// Every allocation of a scheduler's steps fails once: the step says so, or the request that it was for does, and every
// request ends once, with the tokens that it gives alone or the first ones of them and an error.
#include "counted_new.hpp"

#include <chrono>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"

namespace test_scheduler_faults {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kRequests = 5, kCancelled = 3, kSearches = 4;

Request request_of(std::size_t i) {
  Request request{.prompt = {},
                  .sampler = sampling::chain().temperature(1.0f).seed(i).build(),
                  .generate = {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore},
                  .samples = i == 1 ? 2u : 1u,
                  .tenant = std::string(40, static_cast<char>('a' + i))};
  for (std::size_t t = 0; t < 20 + i; ++t) request.prompt.push_back(static_cast<Token>(1 + t * (i + 2) % 97));
  if (i == kSearches) {
    request.sampler.reset();
    request.generate = {};
    request.beams = BeamOptions{.beams = 2, .max_tokens = 3, .end_of_generation = EndOfGeneration::ignore};
  }
  return request;
}

struct Outcome {
  std::vector<std::vector<Token>> tokens = {{}, {}};  // of samples, or of beams
  std::optional<Error> error = {};
};

// What the requests give where the fail-th allocation of the steps fails; how many fail is what counted::failed says.
std::vector<Outcome> serve(const Engine& engine, std::int64_t fail) {
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 16}}));
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < kRequests; ++i) handles.push_back(must(scheduler.submit(request_of(i))));
  handles[kCancelled].cancel();
  {
    const counted::Scope scope(fail);
    for (int step = 0; step < 6; ++step) {
      const auto more = scheduler.step();
      if (!more && more.error().code() != ErrorCode::out_of_memory) FAIL(more.error().text());
    }
  }
  std::vector<Outcome> outcomes(kRequests);
  const auto begin = std::chrono::steady_clock::now();
  while (!scheduler.idle()) {
    must(scheduler.step());
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));  // or a request would never end
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    while (auto piece = handles[i].try_next()) outcomes[i].tokens[piece->sample].push_back(piece->piece.token);
    if (const Status status = handles[i].status(); !status) outcomes[i].error = status.error();
    CHECK(handles[i].state() == RequestState::ended);
    if (i != kSearches) continue;
    const std::vector<Beam> beams = handles[i].take_beams();
    CHECK(beams.empty() == outcomes[i].error.has_value());
    for (std::size_t beam = 0; beam < beams.size(); ++beam) outcomes[i].tokens[beam] = beams[beam].tokens;
  }
  const SchedulerFigures figures = scheduler.figures();
  CHECK(figures.submitted == kRequests);
  CHECK(figures.finished + figures.cancelled + figures.failed == kRequests);
  return outcomes;
}

}  // namespace

TEST_CASE("any allocation of a step may fail: no request is lost, and the others give their tokens", "[scheduler]") {
  const Engine engine = load_stories({.context = 64, .threads = 1}, "tessera-stories-draft");
  const std::vector<Outcome> good = serve(engine, -1);
  for (std::size_t i = 0; i < kRequests; ++i) REQUIRE(good[i].error.has_value() == (i == kCancelled));
  REQUIRE(good[kSearches].tokens[1].size() == 3);
  std::size_t failed_requests = 0;
  std::int64_t fail = 0;
  for (;; fail += fail < 200 ? 1 : 5) {
    CAPTURE(fail);
    const std::vector<Outcome> outcomes = serve(engine, fail);
    if (counted::failed == 0) break;
    for (std::size_t i = 0; i < kRequests; ++i) {
      if (i == kCancelled) continue;
      for (std::size_t sample = 0; sample < 2; ++sample) {
        const auto& got = outcomes[i].tokens[sample];
        const auto& want = good[i].tokens[sample];
        if (!outcomes[i].error) CHECK(got == want);
        REQUIRE(got.size() <= want.size());
        CHECK(std::ranges::equal(got, std::span(want).first(got.size())));
      }
      failed_requests += outcomes[i].error ? 1 : 0;
      if (outcomes[i].error) CHECK(outcomes[i].error->code() == ErrorCode::out_of_memory);
    }
    CHECK(engine.kv_figures().used_bytes == 0);
  }
  CHECK(fail > 100);
  CHECK(failed_requests < static_cast<std::size_t>(fail) / 2);  // most steps are made again
}

}  // namespace test_scheduler_faults
