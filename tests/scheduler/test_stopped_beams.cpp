// A search that is stopped, or fails, while some of its beams' rows are computed and others are not: the search ends,
// and nobody else's tokens change. Under a sanitizer this also says that no beam is used after it was freed.
#include <string_view>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"

namespace test_stopped_beams {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kTokens = 6;

// Requests a stop when the model has come to its first layer for the at-th time.
struct Stopper : InputObserver {
  std::stop_source stop;
  int at = 0, seen = 0;
  void see(std::string_view tensor, std::uint32_t, std::span<const float>) noexcept override {
    if (at > 0 && tensor.find("blk.0.attn_q") != std::string_view::npos && ++seen == at) stop.request_stop();
  }
};

Request search(const Stopper& stopper) {
  Request request{.prompt = {5, 6, 7, 8}};
  request.beams = BeamOptions{.beams = 3,
                              .max_tokens = kTokens,
                              .end_of_generation = EndOfGeneration::ignore,
                              .stop = stopper.stop.get_token()};
  return request;
}
Request drawn(std::uint64_t seed) {
  return {.prompt = {5, 6, 7, static_cast<Token>(9 + seed)},
          .sampler = sampling::chain().temperature(1.0f).seed(seed).build(),
          .generate = {.max_tokens = 3 * kTokens, .end_of_generation = EndOfGeneration::ignore}};
}

std::vector<Token> tokens_of(RequestHandle& handle) {
  std::vector<Token> tokens;
  while (auto piece = handle.try_next()) tokens.push_back(piece->piece.token);
  return tokens;
}

void run_out(Scheduler& scheduler) {
  for (int step = 0; step < 200 && !scheduler.idle(); ++step) must(scheduler.step());
  REQUIRE(scheduler.idle());
}

}  // namespace

TEST_CASE("a stop requested while some rows of a search are computed ends the search, and nobody else", "[scheduler]") {
  std::vector<std::vector<Token>> alone;
  std::vector<std::vector<Token>> beams;
  int stopped = 0;
  for (int at = 0;; ++at) {  // 0: none
    CAPTURE(at);
    Stopper stopper;
    stopper.at = at;
    // A row a step: each beam's row is a step of its own, and the stop lies between two of them.
    const Engine engine = must(Engine::load(golden_dir() / "llama-gqa.gguf",
                                            {.context = 64, .threads = 1, .step_rows = 1, .input_observer = &stopper}));
    if (at == 0) {
      for (std::uint64_t i = 0; i < 2; ++i) {
        Scheduler scheduler = must(Scheduler::create(engine));
        RequestHandle handle = must(scheduler.submit(drawn(i)));
        run_out(scheduler);
        alone.push_back(tokens_of(handle));
        REQUIRE(alone.back().size() == 3 * kTokens);
      }
    }
    Scheduler scheduler = must(Scheduler::create(engine));
    RequestHandle first = must(scheduler.submit(drawn(0))), searching = must(scheduler.submit(search(stopper))),
                  last = must(scheduler.submit(drawn(1)));
    run_out(scheduler);
    CHECK(tokens_of(first) == alone[0]);
    CHECK(tokens_of(last) == alone[1]);
    CHECK_FALSE(searching.try_next().has_value());  // a search gives no pieces
    const Status status = searching.status();
    std::vector<std::vector<Token>> found;
    for (const Beam& beam : searching.take_beams()) found.push_back(beam.tokens);
    if (at == 0) beams = found;
    if (!status) {
      CHECK(status.error().code() == ErrorCode::cancelled);
      CHECK(found.empty());
      ++stopped;
    } else {
      CHECK(found == beams);
    }
    // The engine and the scheduler go on.
    Stopper never;
    RequestHandle again = must(scheduler.submit(search(never)));
    run_out(scheduler);
    CHECK(again.status().has_value());
    CHECK(again.take_beams().size() == 3);
    CHECK(engine.kv_figures().used_bytes == 0);
    if (at > 0 && status) break;  // the stop came behind the end
  }
  CHECK(stopped > 3 * static_cast<int>(kTokens));
}

TEST_CASE("beam_search() alone, stopped while some rows are computed, leaves the session as it was", "[scheduler]") {
  Stopper stopper;
  const Engine engine = must(Engine::load(golden_dir() / "llama-gqa.gguf",
                                          {.context = 64, .threads = 1, .step_rows = 1, .input_observer = &stopper}));
  Session session = must(engine.session());
  must(session.append(std::vector<Token>{5, 6, 7, 8}));
  const BeamOptions options{.beams = 3, .max_tokens = kTokens, .end_of_generation = EndOfGeneration::ignore};
  const std::vector<Beam> expected = must(beam_search(session, options));
  const std::uint64_t used = engine.kv_figures().used_bytes;
  for (int at = 1;; ++at) {
    CAPTURE(at);
    stopper.stop = {};
    stopper.seen = 0;
    stopper.at = at;
    BeamOptions stoppable = options;
    stoppable.stop = stopper.stop.get_token();
    const auto found = beam_search(session, stoppable);
    CHECK(engine.kv_figures().used_bytes == used);
    if (found) {
      CHECK(found->front().tokens == expected.front().tokens);
      break;
    }
    CHECK(found.error().code() == ErrorCode::cancelled);
  }
}

}  // namespace test_stopped_beams
