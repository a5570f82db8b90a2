// Whichever call of the driver's or cuBLASLt's fails: an error or success, everything as it was, and the same bits when
// it is done again; after a lost device errors alone, and an end that leaves nothing.
#include <optional>

#include "cuda/backend/rig.hpp"
#include "engine/kv_file.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr int kOutOfMemory = 2, kLaunchFailed = 719;  // CUresult
constexpr MadeShape kShape{.d_model = 32, .layers = 2, .heads = 2, .kv_heads = 1, .ffn = 32, .vocab = 40, .context = 96};
constexpr std::size_t kPrompt = 20;  // more than kGemmRows
const SessionOptions kPrivate{.kv = {.dtype = DType::f16, .page_tokens = 16, .prefix = PrefixReuse::off}};

const MadeModel& model() {
  static const MadeModel made = make_model(kShape, DType::q8_0);  // unpacked for cuBLAS
  return made;
}
std::vector<Token> prompt() { return made_tokens(kPrompt, kShape.vocab, 4); }

// What an operation works on and makes.
struct Trial {
  Session session;
  std::optional<Session> other = {};
  Bytes bytes = {};
};

struct Outcome {
  explicit Outcome(const Trial& trial) : session(trial.session), bytes(trial.bytes) {
    if (trial.other) other.emplace(*trial.other);
  }
  bool operator==(const Outcome&) const = default;
  Snapshot session;
  std::optional<Snapshot> other;
  Bytes bytes;
};

using Setup = std::function<Session(const Engine&)>;
using Operation = std::function<Status(Trial&)>;

template <class T>
Status keep(Result<T> result, std::optional<T>& at) {
  if (!result) return std::move(result).error();
  at.emplace(*std::move(result));
  return {};
}
template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status() : Status(result.error());
}

bool fits(ErrorCode code) { return code == ErrorCode::out_of_memory || code == ErrorCode::device_error; }

// All of the first and last, and some between.
std::vector<std::uint64_t> calls_to_fail(std::uint64_t n) {
  std::vector<std::uint64_t> calls;
  const std::uint64_t edge = 32 / kSlower;
  for (std::uint64_t k = 1; k <= n; k += k <= edge || k + edge > n ? 1 : 11 * kSlower - 1 + k % 2) calls.push_back(k);
  return calls;
}

void check_nothing_is_left() {
  INFO(tessera_emulator_last_mistake());
  CHECK(tessera_emulator_live_count() == 0);
  CHECK(tessera_emulator_mistakes() == 0);
  CHECK(tessera_emulator_context_depth() == 0);
}

Session begun(const Engine& engine, const SessionOptions& options = kPrivate) {
  Session session = must(engine.session(options));
  must(session.append(prompt()));
  return session;
}

Sampler drawing() { return sampling::chain().temperature(0.9f).top_p(0.95f).seed(5).build(); }

// Fails each call of the operation in turn.
void sweep(const Engine& engine, const Setup& setup, const Operation& operation) {
  const Session start = setup(engine);
  const auto fresh = [&] {
    engine.trim();
    return Trial{.session = must(start.clone())};
  };
  Trial undisturbed = fresh();
  const Snapshot before(undisturbed.session);
  const std::uint64_t first = tessera_emulator_calls();
  must(operation(undisturbed));
  const std::uint64_t n = tessera_emulator_calls() - first;
  REQUIRE(n > 0);
  const Outcome expected(undisturbed);
  std::size_t errors = 0;
  for (const std::uint64_t k : calls_to_fail(n)) {
    for (const int code : {kOutOfMemory, kLaunchFailed}) {
      INFO("call " << k << " of " << n << " fails with " << code);
      Trial trial = fresh();
      tessera_emulator_fail_call(k, code);
      const Status status = operation(trial);
      tessera_emulator_fail_call(0, 0);
      if (!status) {
        ++errors;
        INFO(status.error().text());
        CHECK(fits(status.error().code()));
        CHECK_FALSE(trial.other.has_value());
        Snapshot after(trial.session);
        after.edited = before.edited;  // an edit that failed leaves its mark: no pages of it are offered to others
        REQUIRE(after == before);
        must(operation(trial));
      }
      REQUIRE(Outcome(trial) == expected);
    }
  }
  CHECK(errors > 0);
  INFO(tessera_emulator_last_mistake());
  CHECK(tessera_emulator_mistakes() == 0);
  CHECK(tessera_emulator_context_depth() == 0);
}

Status save_to(Trial& trial) {
  trial.bytes.clear();
  Status status = trial.session.save([&](std::span<const std::byte> piece) -> Status {
    trial.bytes.insert(trial.bytes.end(), piece.begin(), piece.end());
    return {};
  });
  if (!status) trial.bytes.clear();
  return status;
}

Status forward_of(Trial& trial, const Engine& engine) {
  const std::vector<float> embedding(kShape.d_model, 0.25f);
  Batch batch;
  must(batch.add(trial.session, {.token = 7, .embedding = {}, .want = Want::hidden}));
  must(batch.add(trial.session, {.embedding = embedding, .want = Want::logits}));
  const auto outputs = engine.forward(batch);
  if (!outputs) return outputs.error();
  const auto values = std::as_bytes(outputs->row(0)), logits = std::as_bytes(outputs->row(1));
  trial.bytes.assign(values.begin(), values.end());
  trial.bytes.insert(trial.bytes.end(), logits.begin(), logits.end());
  return {};
}

// By name, on sessions that begin with the prompt.
std::vector<std::pair<const char*, Operation>> operations(const Engine& engine) {
  return {
      {"a chunk of a prompt", [](Trial& t) { return status_of(t.session.append(prompt())); }},
      {"a token", [](Trial& t) { return status_of(t.session.append(std::vector<Token>{3})); }},
      {"a session", [&engine](Trial& t) { return keep(engine.session({.kv = {.kind = KvKind::contiguous}}), t.other); }},
      {"a fork that writes",
       [](Trial& t) {
         auto fork = t.session.fork();
         if (!fork) return Status(fork.error());
         if (auto logits = fork->append(std::vector<Token>{9, 8}); !logits) return Status(logits.error());
         t.other.emplace(*std::move(fork));
         return Status();
       }},
      {"clone", [](Trial& t) { return keep(t.session.clone(), t.other); }},
      {"another type", [](Trial& t) { return keep(t.session.convert({.dtype = DType::int8, .page_tokens = 32}), t.other); }},
      {"contiguous", [](Trial& t) { return keep(t.session.convert({.kind = KvKind::contiguous}), t.other); }},
      {"save", save_to},
      {"remove", [](Trial& t) { return t.session.remove(3, 8); }},
      {"forward", [&engine](Trial& t) { return forward_of(t, engine); }},
      {"score", [](Trial& t) { return status_of(t.session.score(std::vector<Token>{1, 2, 3})); }},
  };
}

}  // namespace

TEST_CASE("operations on a session: any call may fail", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  for (const char* name : {"cuBLAS", "own kernels"}) {
    const Numerics numerics = name[0] == 'c' ? Numerics::automatic : Numerics::invariant;
    const Engine engine = model().load(on_cuda({.numerics = numerics}));
    for (const auto& [what, operation] : operations(engine)) {
      DYNAMIC_SECTION(what << ", " << name) { sweep(engine, [](const Engine& e) { return begun(e); }, operation); }
    }
  }
  check_nothing_is_left();
}

TEST_CASE("a contiguous cache, a first prompt, a restored session, a stream's cut: any call may fail", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  {
    const Engine engine = model().load(on_cuda());
    const Setup empty = [](const Engine& e) { return must(e.session(kPrivate)); };
    SECTION("a first prompt") {
      sweep(engine, empty, [](Trial& t) { return status_of(t.session.append(prompt())); });
    }
    SECTION("restore") {
      const Bytes bytes = saved(begun(engine));
      sweep(engine, empty, [&](Trial& t) { return keep(engine.restore(bytes, kPrivate), t.other); });
    }
    SECTION("a contiguous cache is edited") {
      sweep(engine, [](const Engine& e) { return begun(e, {.kv = {.dtype = DType::int8, .kind = KvKind::contiguous}}); },
            [](Trial& t) { return t.session.remove(1, 9); });
    }
    SECTION("a stream is cut") {
      SessionOptions options = kPrivate;
      options.context = 40;
      options.stream = {.sinks = 2, .window = 12};
      sweep(engine, [&](const Engine& e) {
              Session session = begun(e, options);
              must(session.append(made_tokens(19, kShape.vocab, 8)));
              return session;  // one token is left
            },
            [](Trial& t) { return t.session.keep_window(2, 12); });
    }
  }
  check_nothing_is_left();
}

TEST_CASE("cuBLAS's first products, whose kernels are chosen then: any call may fail", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  const Engine reference = model().load(on_cuda());
  const Snapshot expected(begun(reference));
  std::uint64_t n = 0;
  for (std::uint64_t k = 0; k <= n; k += 3 * kSlower) {  // 0: none fails
    const Engine engine = model().load(on_cuda());
    Session session = must(engine.session(kPrivate));
    tessera_emulator_fail_call(k, k % 2 == 0 ? kOutOfMemory : kLaunchFailed);
    const std::uint64_t first = tessera_emulator_calls();
    const Status status = status_of(session.append(prompt()));
    if (k == 0) n = tessera_emulator_calls() - first;
    tessera_emulator_fail_call(0, 0);
    INFO("call " << k << " of " << n);
    if (!status) {
      CHECK(fits(status.error().code()));
      must(session.append(prompt()));
    }
    REQUIRE(Snapshot(session) == expected);
  }
  CHECK(tessera_emulator_mistakes() == 0);
}

TEST_CASE("tokens drawn on the device: any call may fail, and what was delivered stays", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  const GenerateOptions four{.max_tokens = 4, .end_of_generation = EndOfGeneration::ignore};
  {
    const Engine engine = model().load(on_cuda());
    const Session start = begun(engine);
    Session undisturbed = must(start.clone());
    Sampler sampler = drawing();
    const std::uint64_t first = tessera_emulator_calls();
    must(undisturbed.generate(sampler, four, {}));
    const std::uint64_t n = tessera_emulator_calls() - first;
    const Snapshot expected(undisturbed);
    for (const std::uint64_t k : calls_to_fail(n)) {
      for (const int code : {kOutOfMemory, kLaunchFailed}) {
        INFO("call " << k << " of " << n << " fails with " << code);
        Session session = must(start.clone());
        Sampler same = drawing();
        tessera_emulator_fail_call(k, code);
        const auto summary = session.generate(same, four, {});
        tessera_emulator_fail_call(0, 0);
        if (!summary) {
          CHECK(fits(summary.error().code()));
          const std::size_t done = session.tokens().size() - kPrompt;
          REQUIRE(done < 4);
          REQUIRE(session.position() + (done > 0 ? 1 : 0) == session.tokens().size());
          GenerateOptions rest = four;
          rest.max_tokens -= done;
          must(session.generate(same, rest, {}));
        }
        REQUIRE(Snapshot(session) == expected);
      }
    }
  }
  check_nothing_is_left();
}

TEST_CASE("suspended and resumed: any call may fail, and nothing is lost", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  {
    EngineOptions options = with_file("cuda-faults", std::uint64_t{1} << 20);
    const Engine engine = model().load(on_cuda(options));
    const Session start = begun(engine);
    const Snapshot expected(start);
    for (std::uint64_t k = 1; k <= 40; ++k) {
      for (const int code : {kOutOfMemory, kLaunchFailed}) {
        INFO("call " << k << " fails with " << code);
        engine.trim();
        Session session = must(start.clone());
        const std::uint64_t errors = engine.kv_figures().file_errors;
        tessera_emulator_fail_call(k, code);
        const Status suspended = session.suspend();
        const auto written = [&] { return session.kv().bytes() == 0 || engine.kv_figures().file_errors > errors; };
        if (k % 2 == 0) CHECK(eventually(written));
        Status resumed = session.resume();
        tessera_emulator_fail_call(0, 0);
        if (!suspended) CHECK(fits(suspended.error().code()));
        if (!resumed) {
          INFO(resumed.error().text());
          CHECK((fits(resumed.error().code()) || resumed.error().code() == ErrorCode::io));
          CHECK(session.suspended());
          must(session.resume());
        }
        REQUIRE(Snapshot(session) == expected);
      }
    }
  }
  check_nothing_is_left();
}

TEST_CASE("loading: any call may fail, and nothing is left of it", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  for (const Numerics numerics : {Numerics::invariant, Numerics::automatic}) {
    const EngineOptions options = on_cuda({.numerics = numerics, .threads = 1});
    const ModelFile file = model().file();
    const std::uint64_t first = tessera_emulator_calls();
    (void)must(Engine::load(file, options));
    const std::uint64_t n = tessera_emulator_calls() - first;
    // Most calls look kernels up.
    const std::uint64_t step = std::max<std::uint64_t>(n / (numerics == Numerics::invariant ? 60 : 12) * kSlower, 1);
    for (std::uint64_t k = 1; k <= n; k += k < 25 || k + 60 / kSlower > n ? 1 : step) {
      INFO("call " << k << " of " << n);
      tessera_emulator_fail_call(k, k % 2 == 0 ? kOutOfMemory : kLaunchFailed);
      {
        const auto engine = Engine::load(file, options);
        tessera_emulator_fail_call(0, 0);
        if (engine) {
          must(must(engine->session()).append(prompt()));
        } else {
          INFO(engine.error().text());
          CHECK((fits(engine.error().code()) || (k == 1 && engine.error().code() == ErrorCode::unsupported)));  // cuInit
        }
      }
      REQUIRE(tessera_emulator_live_count() == 0);
    }
  }
  check_nothing_is_left();
}

TEST_CASE("the end: any call may fail, and everything is given back", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  std::uint64_t n = 0;
  for (std::uint64_t k = 0; k <= n; ++k) {
    std::optional<Engine> engine(model().load(on_cuda()));
    std::optional<Session> session(begun(*engine));
    std::optional<Session> contiguous(must(session->convert({.kind = KvKind::contiguous})));
    tessera_emulator_fail_call(k, kLaunchFailed);
    const std::uint64_t first = tessera_emulator_calls();
    session.reset();
    engine->trim();
    engine.reset();
    contiguous.reset();
    if (k == 0) n = tessera_emulator_calls() - first;
    tessera_emulator_fail_call(0, 0);
    INFO("call " << k << " of " << n);
    REQUIRE(tessera_emulator_live_count() == 0);
  }
  check_nothing_is_left();
}

TEST_CASE("a lost device: errors alone from then on, and an end that leaves nothing", "[cuda][faults]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  const std::size_t n_operations = operations(model().load(on_cuda())).size();
  for (std::size_t i = 0; i < n_operations; ++i) {
    for (const std::uint64_t k : {1, 3, 11, 40}) {
      {
        const Engine engine = model().load(on_cuda());
        Trial trial{.session = begun(engine)};
        Session spare = begun(engine);
        Trial kept{.session = begun(engine)};
        const auto all = operations(engine);
        INFO(all[i].first << ", lost at call " << k);
        const std::vector<Token> tokens(trial.session.tokens().begin(), trial.session.tokens().end());
        const std::vector<float> logits(trial.session.logits().begin(), trial.session.logits().end());
        tessera_emulator_lose_device(k, kLaunchFailed);
        if (const Status status = all[i].second(trial); !status) {
          CHECK(fits(status.error().code()));
          CHECK(std::ranges::equal(trial.session.tokens(), tokens));
          CHECK(trial.session.position() == tokens.size());
          CHECK(same_bits(trial.session.logits(), logits));
        }
        if (tessera_emulator_calls() > 0) {
          (void)spare.append(std::vector<Token>{1});  // so that the call has come, if the operation had fewer
          (void)spare.append(std::vector<Token>{1});
        }
        for (const auto& [what, operation] : all) {
          INFO(what);
          const Status status = operation(kept);
          REQUIRE(!status);
          CHECK(fits(status.error().code()));
        }
        Sampler sampler = drawing();
        CHECK(!kept.session.generate(sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, {}));
        must(kept.session.truncate(4));
      }
      tessera_emulator_lose_device(0, 0);
      REQUIRE(tessera_emulator_live_count() == 0);
    }
  }
  // The context is gone: a new engine works.
  Session again = begun(model().load(on_cuda()));
  CHECK(again.position() == kPrompt);
  CHECK(tessera_emulator_mistakes() == 0);
}
