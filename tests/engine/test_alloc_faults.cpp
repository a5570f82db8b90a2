// Every allocation of every call fails once: an error, nothing changed, nothing leaked, and the call can be repeated.
// "Allocation" is operator new in all its forms and the host's Memory alike.
#include "counted_new.hpp"

#include <fstream>
#include <iterator>

#include "engine/faulty_memory.hpp"
#include "engine/made_adapter.hpp"
#include "engine/models.hpp"
#include "sanitized.hpp"

namespace test_alloc_faults {

using namespace tessera;
using namespace tessera::test;
using counted::Failure;

namespace {

EngineOptions options_with(FaultyMemory& memory) {
  EngineOptions options;
  options.threads = 2;
  options.step_rows = 8;  // a prompt takes several steps
  options.memory = &memory;
  return options;
}

constexpr Failure kFailures[] = {Failure::once, Failure::from_then_on};

// Runs call(), whose k-th allocation fails, for k = 0, 1, ... until none does; after_error() each time it fails. A few
// allocations can be done without (std::stable_sort's buffer): then the call must have succeeded. `spare`: the most of them.
template <class Call, class AfterError, class AfterSuccess>
void fail_every_allocation(const char* what, Call call, AfterError after_error, AfterSuccess after_success, std::int64_t spare = 4) {
  for (const Failure mode : kFailures) {
    std::int64_t k = 0, survived = 0;
    for (;; ++k) {
      counted::Scope scope(k, mode);
      {
        auto result = call();
        scope.stop();
        const bool was_hit = counted::failed > 0;
        INFO(what << ", allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
        if (result) {
          after_success(*result);
          if (!was_hit) break;
          ++survived;
        } else {
          if (result.error().code() != ErrorCode::out_of_memory) FAIL(result.error().text());
          after_error();
        }
      }
      if (counted::live != 0) FAIL(what << ", allocation " << k << ": " << counted::live << " bytes are leaked");
    }
    INFO(what << ": " << k << " allocations, " << survived << " can be done without");
    CHECK(survived <= spare);
    if (std::getenv("TESSERA_TEST_FIGURES") != nullptr) {
      WARN(what << ": " << k << " allocations fail, " << survived << " of them are done without");
    }
  }
}

Sampler many_stages() {
  return sampling::chain()
      .penalties({.repetition = 1.1f, .frequency = 0.1f})
      .top_k(40)
      .temperature(0.9f)
      .top_p(0.95f)
      .mirostat({.tau = 4.0f})
      .seed(7)
      .build();
}

struct Rig {
  explicit Rig(const std::string& name)
      : engine(must(Engine::load(golden_dir() / (name + ".gguf"), options_with(memory)))),
        tokens(read_tokens(golden_dir() / (name + ".tokens.txt"))) {}
  FaultyMemory memory;
  Engine engine;
  std::vector<Token> tokens;
};

const char* const kModels[] = {"llama-gqa", "gpt2", "qwen3moe", "qwen35", "deepseek-v3", "gemma4-e"};

}  // namespace

TEST_CASE("planning, for a CPU or a GPU: any allocation may fail", "[faults]") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  for (const BackendKind kind : {BackendKind::cpu, BackendKind::cuda}) {
    EngineOptions options;
    options.backend = kind;
    options.threads = 1;  // without a number the process's quota is read, and done without where there is no memory
    if (const auto plan = Engine::plan(file, options); !plan) {
      CHECK((kind == BackendKind::cuda && plan.error().code() == ErrorCode::unsupported));  // a build without it
      continue;
    }
    fail_every_allocation("planning", [&] { return Engine::plan(file, options); }, [] {},
                          [](const Plan& plan) { CHECK(plan.peak > 0); });
  }
}

TEST_CASE("loading: any allocation may fail", "[faults]") {
  for (const std::string name : {"llama-gqa", "gpt2", "gpt-oss", "qwen35", "deepseek-v3", "gemma4-e"}) {
    if (tests::kSanitized && name != "llama-gqa" && name != "qwen35") continue;
    FaultyMemory memory;
    const EngineOptions options = options_with(memory);
    const auto path = golden_dir() / (name + ".gguf");
    const auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));

    const Engine reference = must(Engine::load(path, options));
    Session session = must(reference.session());
    const std::vector<float> expected = all_logits(session, tokens, tokens.size());
    const std::size_t before = memory.live;
    const auto nothing_left = [&] { REQUIRE(memory.live == before); };
    const auto same_engine = [&](const Engine& engine) {
      Session again = must(engine.session());
      CHECK(same_bits(all_logits(again, tokens, tokens.size()), expected));
    };

    fail_every_allocation("load from a file", [&] { return Engine::load(path, options); }, nothing_left, same_engine);
    fail_every_allocation(
        "load from memory",
        [&]() -> Result<Engine> {
          auto file = ModelFile::from_memory(bytes);
          if (!file) return file.error();
          return Engine::load(*file, options);
        },
        nothing_left, same_engine);
    const ModelFile file = must(ModelFile::open(path));
    fail_every_allocation("plan", [&] { return Engine::plan(file, options); }, nothing_left,
                          [&](const Plan& plan) { CHECK(plan.peak == reference.plan().peak); });
    // The engine that was there all along.
    must(session.clear());
    CHECK(same_bits(all_logits(session, tokens, tokens.size()), expected));
  }
}

TEST_CASE("sessions: any allocation of creating, appending, scoring and cloning may fail", "[faults]") {
  for (const std::string name : kModels) {
    INFO(name);
    Rig rig(name);
    const std::span<const Token> tokens(rig.tokens);
    Session whole = must(rig.engine.session());
    must(whole.append(tokens));
    const Snapshot expected(whole);
    // Which states of recurrent layers a session keeps depends on where its steps ended, and so do its bytes.
    const bool has_states = std::ranges::any_of(rig.engine.spec().layers, &LayerSpec::is_recurrent);
    const auto is_expected = [&](const Session& session) {
      Snapshot now(session);
      if (has_states) now.kv_bytes = expected.kv_bytes;
      return now == expected;
    };

    fail_every_allocation("session", [&] { return rig.engine.session(); }, [] {}, [](const Session&) {});

    // A session that has something to lose.
    Session session = must(rig.engine.session());
    must(session.append(tokens.first(5)));
    const Snapshot before(session);
    const auto unchanged = [&] { REQUIRE(Snapshot(session) == before); };
    const auto undo = [&](const auto&) {
      CHECK(is_expected(session));
      must(session.truncate(4));  // the logits after 5 tokens again
      must(session.append(tokens.subspan(4, 1)));
    };
    // counted::live is 0 only if buffers have their sizes already: a call that works has left them behind.
    for (int i = 0; i < 2; ++i) {
      must(session.append(tokens.subspan(5)));
      undo(0);
    }
    fail_every_allocation("append", [&] { return session.append(tokens.subspan(5)); }, unchanged, undo);
    fail_every_allocation("append for all logits",
                          [&] { return session.append(tokens.subspan(5), {.logits = LogitsOf::all}); }, unchanged, undo);

    const std::vector<float> scores = must(session.score(tokens.subspan(5)));
    undo(0);
    fail_every_allocation("score", [&] { return session.score(tokens.subspan(5)); }, unchanged,
                          [&](const std::vector<float>& got) {
                            CHECK(same_bits(got, scores));
                            undo(0);
                          });

    must(session.clone());  // the pools' own tables have grown
    for (int i = 0; i < 2; ++i) {
      Session copy = must(session.fork()), another = must(session.fork());
      must(copy.append(tokens.subspan(5)));
      must(another.append(tokens.subspan(5)));
    }
    const DType other = holds(rig.engine, DType::int8) ? DType::int8 : DType::bf16;
    must(session.convert({.dtype = other, .page_tokens = 16}));
    fail_every_allocation("clone", [&] { return session.clone(); }, unchanged, [&](Session& copy) {
      counted::Pause pause;
      CHECK(Snapshot(copy) == before);
    });
    fail_every_allocation("fork", [&] { return session.fork(); }, unchanged, [&](Session& copy) {
      counted::Pause pause;
      CHECK(Snapshot(copy) == before);
    });
    fail_every_allocation("a fork's own page",
                          [&]() -> Result<Session> {
                            auto copy = session.fork();
                            if (!copy) return copy;
                            auto logits = copy->append(tokens.subspan(5));
                            if (!logits) return logits.error();
                            return copy;
                          },
                          unchanged, [&](Session& copy) {
                            counted::Pause pause;
                            CHECK(is_expected(copy));
                            CHECK(Snapshot(session) == before);
                          });
    fail_every_allocation("convert", [&] { return session.convert({.dtype = other, .page_tokens = 16}); }, unchanged,
                          [&](Session& copy) { CHECK(copy.kv().dtype() == other); });
  }
}

TEST_CASE("edits: any allocation may fail, and leaves the session as it was", "[faults]") {
  Rig rig("llama-gqa");
  const std::span<const Token> tokens(rig.tokens);
  Session session = must(rig.engine.session());
  must(session.append(tokens));
  const Snapshot before(session);
  Session reference = must(session.fork());
  must(reference.remove(2, 5));
  const Snapshot expected(reference);
  for (const Failure mode : kFailures) {
    for (std::int64_t k = 0, done = 0; done == 0; ++k) {
      Session copy = must(session.fork());
      counted::Scope scope(k, mode);
      const Status status = copy.remove(2, 5);
      scope.stop();
      done = status ? 1 : 0;
      REQUIRE(Snapshot(copy) == (status ? expected : before));
      REQUIRE(Snapshot(session) == before);
      must(copy.append(tokens.first(2)));
    }
  }
}

TEST_CASE("the first append grows a session's buffers or leaves it empty", "[faults]") {
  Rig rig("llama-gqa");
  for (const Failure mode : kFailures) {
    for (std::int64_t k = 0, done = 0; done == 0; ++k) {
      Session session = must(rig.engine.session());
      const Snapshot before(session);
      counted::Scope scope(k, mode);
      const auto failed = session.append(rig.tokens, {.logits = LogitsOf::all});
      scope.stop();
      done = failed ? 1 : 0;
      if (done == 0) {
        REQUIRE(Snapshot(session) == before);
        must(session.append(rig.tokens, {.logits = LogitsOf::all}));
      }
      REQUIRE(session.position() == rig.tokens.size());
    }
  }
}

TEST_CASE("generate: an error is the last piece, and what follows is what would have come", "[faults]") {
  Rig rig("llama-gqa");
  constexpr std::size_t kTokens = 6;
  const auto prompt = std::span<const Token>(rig.tokens).first(12);
  const auto options = [](std::size_t n) {
    return GenerateOptions{.max_tokens = n, .stop_strings = {"no such text"},
                           .end_of_generation = EndOfGeneration::ignore, .logprobs = 3};
  };
  Session reference = must(rig.engine.session());
  must(reference.append(prompt));
  Sampler reference_sampler = many_stages();
  must(reference.generate(reference_sampler, options(kTokens), {}));
  must(reference.append({}));
  const Snapshot expected(reference);

  std::int64_t failures = 0;
  for (const Failure mode : kFailures) {
    for (std::int64_t k = 0, done = 0; done == 0; ++k) {
      INFO("allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
      Session session = must(rig.engine.session());
      must(session.append(prompt));
      Sampler sampler = many_stages();
      const GenerateOptions first_try = options(kTokens);
      std::size_t delivered = 0;
      {
        counted::Scope scope(k, mode);
        Generation generation = session.generate(sampler, first_try);
        for (;;) {
          counted::Pause pause;
          const Snapshot before(session);
          std::optional<Result<Piece>> piece;
          {
            counted::active = true;
            piece = generation.next();
            counted::active = false;
          }
          if (!piece) break;
          if (*piece) {
            ++delivered;
            continue;
          }
          if (piece->error().code() != ErrorCode::out_of_memory) FAIL(piece->error().text());
          REQUIRE(Snapshot(session) == before);
          ++failures;
        }
        done = counted::failed == 0 ? 1 : 0;
      }
      REQUIRE(session.tokens().size() == prompt.size() + delivered);
      if (delivered < kTokens) must(session.generate(sampler, options(kTokens - delivered), {}));
      must(session.append({}));
      REQUIRE(Snapshot(session) == expected);
    }
  }
  CHECK(failures > 20);
}

TEST_CASE("forward: a session whose part fails is as it was, and the others have the same bits", "[faults]") {
  Rig rig("llama-gqa");
  const std::span<const Token> tokens(rig.tokens);
  Session a = must(rig.engine.session());
  Session b = must(rig.engine.session());
  must(a.append(tokens.first(7)));
  Sampler greedy = sampling::chain().greedy().build();
  must(a.generate(greedy, {.max_tokens = 1, .end_of_generation = EndOfGeneration::ignore}, {}));
  REQUIRE(a.has_pending());
  const Snapshot before_a(a), before_b(b);
  const auto undo = [&] {
    must(a.truncate(6));
    must(a.append(tokens.subspan(6, 1)));
    must(a.generate(greedy, {.max_tokens = 1, .end_of_generation = EndOfGeneration::ignore}, {}));
    must(b.clear());
    REQUIRE(Snapshot(a) == before_a);
  };
  Batch batch;
  must(batch.add(a, tokens.first(3)));
  must(batch.add(b, tokens));
  const std::size_t row_a = 2, row_b = batch.size() - 1;
  const Outputs expected = must(rig.engine.forward(batch));  // and the sessions' buffers have their sizes
  const Snapshot after_a(a), after_b(b);
  undo();
  std::size_t partly = 0;
  for (const Failure mode : kFailures) {
    for (std::int64_t k = 0, done = 0; done == 0; ++k) {
      INFO("allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
      counted::Scope scope(k, mode);
      auto outputs = rig.engine.forward(batch);
      scope.stop();
      done = counted::failed == 0 ? 1 : 0;
      if (!outputs) {
        if (outputs.error().code() != ErrorCode::out_of_memory) FAIL(outputs.error().text());
        REQUIRE(Snapshot(a) == before_a);
        REQUIRE(Snapshot(b) == before_b);
        continue;
      }
      partly += !outputs->status() ? 1 : 0;
      for (const std::size_t row : {row_a, row_b}) {
        const bool good = outputs->outcome(row).has_value();
        if (!good) REQUIRE(outputs->outcome(row).error().code() == ErrorCode::out_of_memory);
        REQUIRE(same_bits(outputs->row(row), good ? expected.row(row) : std::span<const float>()));
      }
      REQUIRE(Snapshot(a) == (outputs->outcome(row_a) ? after_a : before_a));
      REQUIRE(Snapshot(b) == (outputs->outcome(row_b) ? after_b : before_b));
      must(b.clear());
      if (outputs->outcome(row_a)) undo();
    }
  }
  CHECK(partly > 0);
}

TEST_CASE("embed and rerank: any allocation may fail, and leaves nothing", "[faults]") {
  FaultyMemory memory;
  const Engine engine = must(Engine::load(golden_dir() / "encoders/bert-rank", options_with(memory)));
  const std::string_view texts[] = {"the cat", "", "a dog runs slowly over the bread"};
  const Embeddings expected = must(engine.embed(texts));
  const auto scores = must(engine.rerank("red bird", texts));
  const auto trim = [&] { engine.trim(); };  // pages that no session uses are kept for the next one
  trim();
  fail_every_allocation("embed", [&] { return engine.embed(texts); }, trim, [&](const Embeddings& made) {
    CHECK(std::ranges::equal(made.values(), expected.values()));
    trim();
  }, 8);  // lists that are kept for the next call
  fail_every_allocation("rerank", [&] { return engine.rerank("red bird", texts); }, trim, [&](const std::vector<float>& made) {
    CHECK(made == scores);
    trim();
  }, 8);
}

TEST_CASE("adapters: any allocation of loading, using and changing them may fail", "[faults]") {
  FaultyMemory memory;
  const AdapterFolder folder;
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const Engine engine = must(Engine::load(file, options_with(memory)));
  const std::filesystem::path first = folder.write("first", file, {.rank = 5, .seed = 1}),
                              second = folder.write("second", file, {.rank = 3, .dtype = DType::f16, .seed = 2});
  const Adapter kept = must(engine.adapter(first));
  for (int i = 0; i < 2; ++i) must(engine.adapter(second));
  fail_every_allocation("adapter", [&] { return engine.adapter(second); }, [] {}, [](const Adapter& adapter) { CHECK(adapter.rank() == 3); });
  const Adapter other = must(engine.adapter(second));

  std::vector<Token> tokens;
  for (Token i = 0; i < 20; ++i) tokens.push_back(3 * i % 50);
  const std::vector<AdapterUse> uses = {{kept, 0.5f}, {other, 1.0f, 7}}, changed = {{other, 1.0f, 2}};
  const SessionOptions with{.adapters = uses};
  Session whole = must(engine.session(with));
  must(whole.append(tokens));
  const Snapshot expected(whole);
  fail_every_allocation("session", [&] { return engine.session(with); }, [] {}, [](const Session&) {});
  Session session = must(engine.session(with));
  must(session.append(std::span(tokens).first(9)));
  const Snapshot before(session);
  const auto unchanged = [&] { REQUIRE(Snapshot(session) == before); };
  const auto undo = [&](const auto&) {
    CHECK(Snapshot(session) == expected);
    must(session.truncate(8));
    must(session.append(std::span(tokens).subspan(8, 1)));
  };
  for (int i = 0; i < 2; ++i) {
    must(session.append(std::span(tokens).subspan(9)));
    undo(0);
  }
  fail_every_allocation("append", [&] { return session.append(std::span(tokens).subspan(9)); }, unchanged, undo);
  fail_every_allocation("use_adapters",
                        [&]() -> Result<bool> {
                          if (Status done = session.use_adapters(changed); !done) return done.error();
                          return true;
                        },
                        unchanged, [&](bool) {
                          counted::Pause pause;
                          CHECK(session.position() == 0);
                          must(session.use_adapters(uses));
                          must(session.append({}));
                        });
}

TEST_CASE("truncating, dropping sessions and unloading need no memory, and give all back", "[faults]") {
  FaultyMemory memory;
  const auto path = golden_dir() / "llama-gqa.gguf";
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  counted::Scope scope;
  {
    std::optional<Engine> engine = must(Engine::load(path, options_with(memory)));
    std::optional<Session> session = must(engine->session());
    must(session->append(tokens));
    std::optional<Session> copy = must(session->clone());
    const std::int64_t made = counted::count;
    counted::left = 0;
    counted::failure = Failure::from_then_on;
    must(copy->truncate(3));
    must(copy->clear());
    copy.reset();
    must(session->truncate(9));
    engine.reset();
    session.reset();
    counted::failure = Failure::none;
    CHECK(counted::count == made);
    CHECK(memory.live == 0);
  }
  scope.stop();
  // Only the test's own EngineOptions lived beside the engine.
  CHECK(counted::live == 0);
}

}  // namespace test_alloc_faults
