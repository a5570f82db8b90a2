// What a host gives us to call: progress, logs, an executor, a sampler's stage, a stop. Whatever they do, the call ends
// with an error that says so, and nothing has changed.
#include <stdexcept>
#include <thread>

#include "engine/models.hpp"

namespace test_callbacks {

using namespace tessera;
using namespace tessera::test;

namespace {

// Runs everything on the calling thread, and does something at the n-th call.
class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(std::size_t concurrency = 3) : concurrency_(concurrency) {}
  std::size_t concurrency() const noexcept override { return concurrency_; }
  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    if (++calls == at && action) action();
    for (std::size_t i = n; i-- > 0;) task(context, i);
  }

  std::size_t calls = 0, at = 0;
  std::function<void()> action;

 private:
  std::size_t concurrency_;
};

struct Rig {
  explicit Rig(EngineOptions options = {}) : engine(load(std::move(options))) {
    tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  }
  Engine load(EngineOptions options) const {
    options.executor = executor;
    options.step_rows = 8;
    return load_golden("llama-gqa", std::move(options));
  }
  std::shared_ptr<HostExecutor> executor = std::make_shared<HostExecutor>();
  Engine engine;
  std::vector<Token> tokens;
};

// A session after five tokens, and whether it still is one.
struct Five {
  explicit Five(const Rig& rig) : session(must(rig.engine.session())), rest(std::span(rig.tokens).subspan(5)) {
    Session whole = must(rig.engine.session());
    expected = all_logits(whole, rig.tokens, rig.tokens.size());
    must(session.append(std::span(rig.tokens).first(5)));
    logits.assign(session.logits().begin(), session.logits().end());
    checksum = session.kv().checksum(1);
    bytes = session.kv().bytes();
  }
  bool is_unchanged() const {
    return session.position() == 5 && session.tokens().size() == 5 && same_bits(session.logits(), logits) &&
           session.kv().checksum(1) == checksum && session.kv().bytes() == bytes;
  }
  // The same bits as if nothing had happened.
  bool goes_on() {
    const auto last = must(session.append(rest));
    return same_bits(last[0], std::span<const float>(expected).last(last.vocab));
  }

  Session session;
  std::span<const Token> rest;
  std::vector<float> expected, logits;
  std::uint64_t checksum = 0;
  std::size_t bytes = 0;
};

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode{} : result.error().code();
}

}  // namespace

TEST_CASE("a host's executor gives the bits of the engine's own pool", "[callbacks]") {
  Rig rig;
  Session hosted = must(rig.engine.session());
  const auto logits = all_logits(hosted, rig.tokens, 5);
  CHECK(rig.executor->calls > 0);
  const Engine pooled = load_golden("llama-gqa");
  Session session = must(pooled.session());
  CHECK(same_bits(all_logits(session, rig.tokens, 7), logits));
  for (const std::size_t concurrency : {std::size_t{0}, std::size_t{1}, SIZE_MAX}) {
    EngineOptions options;
    options.executor = std::make_shared<HostExecutor>(concurrency);
    const Engine engine = load_golden("llama-gqa", options);
    Session odd = must(engine.session());
    CHECK(same_bits(all_logits(odd, rig.tokens, 24), logits));
  }
}

TEST_CASE("a callback that throws is an error of its own, and nothing has changed", "[callbacks]") {
  Rig rig;
  Five five(rig);
  const auto thrower = [](auto&&...) -> bool { throw std::runtime_error("from the host"); };

  SECTION("while loading") {
    for (const bool in_log : {true, false}) {
      EngineOptions options;
      if (in_log) {
        options.log = [](LogLevel, std::string_view) { throw std::runtime_error("from the host"); };
      } else {
        options.progress = thrower;
      }
      const auto loaded = Engine::load(golden_dir() / "llama-gqa.gguf", options);
      CHECK(code_of(loaded) == ErrorCode::callback_failed);
      CHECK(loaded.error().message() == "from the host");
    }
  }
  SECTION("no exception of the standard's") {
    const auto odd = five.session.append(five.rest, {.progress = [](std::size_t, std::size_t) -> bool { throw 42; }});
    CHECK(code_of(odd) == ErrorCode::callback_failed);
  }
  SECTION("a prompt's progress") {
    CHECK(code_of(five.session.append(five.rest, {.progress = thrower})) == ErrorCode::callback_failed);
    CHECK(five.is_unchanged());
    CHECK(code_of(five.session.score(five.rest, {.progress = thrower})) == ErrorCode::callback_failed);
  }
  SECTION("a stage of the sampler") {
    Sampler sampler = sampling::chain().stage([](sampling::Candidates&, const sampling::Context&) {
      throw std::runtime_error("from the host");
    }).build();
    CHECK(code_of(five.session.generate(sampler, {.max_tokens = 3}, {})) == ErrorCode::callback_failed);
  }
  SECTION("the callback of generate keeps what was delivered") {
    Sampler sampler = sampling::chain().greedy().build();
    Token delivered = -1;
    const auto thrown = five.session.generate(sampler, {.max_tokens = 3}, [&](const Piece& piece) -> bool {
      delivered = piece.token;
      throw std::runtime_error("from the host");
    });
    CHECK(code_of(thrown) == ErrorCode::callback_failed);
    REQUIRE(five.session.tokens().size() == 6);
    CHECK(five.session.tokens().back() == delivered);
    must(five.session.truncate(4));
    must(five.session.append(std::span(rig.tokens).subspan(4, 1)));
  }
  CHECK(five.is_unchanged());
  CHECK(five.goes_on());
}

TEST_CASE("a stop is honoured within one layer, and nothing has changed", "[callbacks]") {
  Rig rig;
  Five five(rig);
  const std::size_t n_layers = rig.engine.spec().n_layers();
  // Calls of the executor that one forward pass takes, and therefore at most what a layer does.
  rig.executor->calls = 0;
  Session whole = must(rig.engine.session());
  must(whole.append(std::span(rig.tokens).first(8)));
  const std::size_t per_layer = rig.executor->calls / n_layers + 1;

  SECTION("requested before the call") {
    std::stop_source stop;
    stop.request_stop();
    rig.executor->calls = 0;
    CHECK(code_of(five.session.append(five.rest, {.stop = stop.get_token()})) == ErrorCode::cancelled);
    CHECK(code_of(five.session.score(five.rest, {.stop = stop.get_token()})) == ErrorCode::cancelled);
    Batch batch;
    must(batch.add(five.session, five.rest));
    CHECK(code_of(rig.engine.forward(batch, {.stop = stop.get_token()})) == ErrorCode::cancelled);
    CHECK(rig.executor->calls <= 3 * per_layer);
    Sampler greedy = sampling::chain().greedy().build();
    CHECK(code_of(five.session.generate(greedy, {.max_tokens = 3, .stop = stop.get_token()}, {})) == ErrorCode::cancelled);
  }
  SECTION("requested in the middle, by another thread") {
    for (const std::size_t at : {1u, 3u, 5u, 9u, 14u}) {
      std::stop_source stop;
      rig.executor->calls = 0;
      rig.executor->at = at;
      rig.executor->action = [&] { std::thread([&] { stop.request_stop(); }).join(); };
      CHECK(code_of(five.session.append(five.rest, {.stop = stop.get_token()})) == ErrorCode::cancelled);
      CHECK(rig.executor->calls <= at + per_layer);
      CHECK(five.is_unchanged());
    }
    rig.executor->action = {};
  }
  SECTION("requested by the progress callback") {
    std::stop_source stop;
    std::size_t steps = 0;
    const auto progress = [&](std::size_t, std::size_t) {
      ++steps;
      stop.request_stop();
      return true;
    };
    CHECK(code_of(five.session.append(five.rest, {.stop = stop.get_token(), .progress = progress})) == ErrorCode::cancelled);
    CHECK(steps == 1);
  }
  SECTION("by the progress callback's answer") {
    const auto no = [](std::size_t, std::size_t) { return false; };
    CHECK(code_of(five.session.append(five.rest, {.progress = no})) == ErrorCode::cancelled);
  }
  SECTION("while generating: the tokens delivered stay") {
    std::stop_source stop;
    Sampler greedy = sampling::chain().greedy().build();
    std::size_t delivered = 0;
    const auto stopped = five.session.generate(greedy, {.max_tokens = 9, .stop = stop.get_token()}, [&](const Piece&) {
      if (++delivered == 2) stop.request_stop();
      return true;
    });
    CHECK(code_of(stopped) == ErrorCode::cancelled);
    CHECK(delivered == 2);
    CHECK(five.session.tokens().size() == 7);
    CHECK(five.session.has_pending());
    must(five.session.truncate(4));
    must(five.session.append(std::span(rig.tokens).subspan(4, 1)));
  }
  CHECK(five.is_unchanged());
  CHECK(five.goes_on());
}

TEST_CASE("a cancelled load reads nothing more", "[callbacks]") {
  const auto load = [](std::size_t at, bool by_token) {
    std::stop_source stop;
    std::size_t calls = 0;
    EngineOptions options;
    options.stop = stop.get_token();
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      CHECK(done <= total);
      if (++calls < at) return true;
      if (by_token) std::thread([&] { stop.request_stop(); }).join();
      return by_token;
    };
    const auto loaded = Engine::load(golden_dir() / "llama-gqa.gguf", options);
    CHECK(code_of(loaded) == ErrorCode::cancelled);
    return calls;
  };
  for (const std::size_t at : {1u, 2u, 7u}) {
    CHECK(load(at, false) == at);
    CHECK(load(at, true) == at);  // what was under way is finished, without another call
  }
  std::stop_source stop;
  stop.request_stop();
  EngineOptions options;
  options.stop = stop.get_token();
  CHECK(code_of(Engine::load(golden_dir() / "llama-gqa.gguf", options)) == ErrorCode::cancelled);
}

}  // namespace test_callbacks
