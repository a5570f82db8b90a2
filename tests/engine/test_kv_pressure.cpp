// Memory for keys and values is short, or refused, while pages are on their way to the file and back.
#include "counted_new.hpp"
#include "engine/kv_file.hpp"
#include "engine/kv_twins.hpp"

namespace test_kv_pressure {

using namespace tessera;
using namespace tessera::test;

namespace {

// With a file, and room in memory for one full session.
EngineOptions one_session(const char* name) {
  EngineOptions options = with_file(name, std::uint64_t{64} << 20);
  options.kv_budget = must(Engine::plan(must(ModelFile::open(golden_dir() / "llama-long.gguf")), options)).kv;
  return options;
}

// Other prompts, until what was cached before is in the file alone.
void press(const Engine& engine) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    Session session = must(engine.session());
    must(session.append(make_tokens(100 + i, engine.spec().context / 2, engine.spec().vocab_size)));
  }
  CHECK(engine.kv_figures().pages_written > 0);
}

// Every page of the session is its own, or shared rightly: others that fill the memory do not change it.
void check_holds(const Engine& engine, const Session& session) {
  CHECK(engine.kv_figures().used_bytes >= session.kv().bytes());
  {
    Session other = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
    must(other.append(make_tokens(999, engine.spec().context / 2 - 64, engine.spec().vocab_size)));
  }
  const Verification found = must(session.verify());
  INFO(found.what);
  CHECK(found.verdict == Verdict::same);
}

}  // namespace

TEST_CASE("a prompt that is computed although the file has it keeps its pages", "[pressure]") {
  const Engine engine = load_golden("llama-long", one_session("computed"));
  const auto prompt = make_tokens(1, engine.spec().context / 2, engine.spec().vocab_size);
  { must(must(engine.session()).append(prompt)); }
  press(engine);
  Session session = must(engine.session());
  must(session.append(prompt, {.logits = LogitsOf::all}));
  CHECK(session.reused() == 0);
  check_holds(engine, session);
}

TEST_CASE("a session that was suspended under pressure keeps its pages when it offers them again", "[pressure]") {
  const Engine engine = load_golden("llama-long", one_session("resumed"));
  Session session = must(engine.session());
  must(session.append(make_tokens(1, engine.spec().context / 2 - 1, engine.spec().vocab_size)));
  must(session.suspend());
  press(engine);
  must(session.append(make_tokens(2, 1, engine.spec().vocab_size)));
  check_holds(engine, session);
}

TEST_CASE("any allocation of suspending and resuming may fail, also while pages are being written", "[pressure]") {
  const Engine engine = load_golden("llama-long", with_file("faults", std::uint64_t{16} << 20));
  Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  must(session.append(make_tokens(3, 800, engine.spec().vocab_size)));
  const std::uint64_t checksum = session.kv().checksum(1);
  for (const bool wait : {false, true}) {
    int failures = 0;
    for (std::int64_t k = 0, done = 0; done < 2; ++k) {
      done = 0;
      {
        counted::Scope scope(k, counted::Failure::once);
        const Status suspended = session.suspend();
        scope.stop();
        if (suspended) ++done; else ++failures;
        CHECK(session.suspended() == suspended.has_value());
      }
      must(session.suspend());
      if (wait) {  // a page that could not be handed over stays in memory until it is suspended again
        must(session.resume());
        must(session.suspend());
        REQUIRE(eventually([&] { return session.kv().bytes() == 0; }));
      }
      {
        counted::Scope scope(k, counted::Failure::once);
        const Status resumed = session.resume();
        scope.stop();
        if (resumed) ++done; else ++failures;
        CHECK(session.suspended() != resumed.has_value());
      }
      must(session.resume());
      REQUIRE(session.kv().checksum(1) == checksum);
    }
    CHECK(failures > 10);
  }
  CHECK(eventually([&] { return engine.kv_figures().file_bytes == 0; }));
}

TEST_CASE("a full KV budget is what the plan's peak counts", "[pressure]") {
  EngineOptions options;
  options.threads = 1;
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-long.gguf"));
  const Plan plain = must(Engine::plan(file, options));
  options.kv_budget = std::uint64_t{64} << 20;
  const Plan plan = must(Engine::plan(file, options));
  CHECK(plan.kv_limit == options.kv_budget);
  CHECK(plan.peak - plain.peak == options.kv_budget - plain.kv);
  options.memory_budget = plan.peak - 1;
  CHECK(Engine::load(file, options).error().code() == ErrorCode::over_budget);
}

TEST_CASE("cached pages of another type go before a pool grows beyond what may be kept", "[pressure]") {
  const Engine engine = load_golden("llama-long");
  const auto prompt = make_tokens(1, engine.spec().context, engine.spec().vocab_size);
  { must(must(engine.session({.kv = {.dtype = DType::f16}})).append(prompt)); }
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  must(session.append(prompt));
  const KvFigures figures = engine.kv_figures();
  CHECK((figures.cached_bytes == 0 || figures.held_bytes <= engine.plan().kv));
}

TEST_CASE("a request that can never be met leaves what others have cached", "[pressure]") {
  EngineOptions options;
  options.kv_budget = must(Engine::plan(must(ModelFile::open(golden_dir() / "llama-long.gguf")), options)).kv / 2;
  const Engine engine = load_golden("llama-long", options);
  const std::size_t n = engine.spec().context;
  { must(must(engine.session()).append(make_tokens(1, n / 4, engine.spec().vocab_size))); }
  const std::uint64_t before = engine.kv_figures().cached_bytes;
  REQUIRE(before > 0);
  Session session = must(engine.session());
  CHECK(session.append(make_tokens(2, n, engine.spec().vocab_size)).error().code() == ErrorCode::cache_full);
  CHECK(engine.kv_figures().cached_bytes == before);
}

TEST_CASE("when memory gives nothing more, another pool's cached pages are given up", "[pressure]") {
  class Limited final : public Memory {
   public:
    void* allocate(std::size_t bytes) noexcept override {
      if (used + bytes > most) return nullptr;
      used += bytes;
      return system_memory().allocate(bytes);
    }
    void release(void* base, std::size_t bytes) noexcept override {
      used -= bytes;
      system_memory().release(base, bytes);
    }
    std::size_t used = 0, most = 0;
  } memory;
  const KvLayerShape shape[] = {{1, 64, 64}};
  const KvLayout halves = must(make_kv_layout(shape, DType::f16)), floats = must(make_kv_layout(shape, DType::f32));
  memory.most = 64 * halves.page_bytes();
  const KvPools pools = must(KvPools::create({.memory = &memory, .keep = ~0ull, .max_slab_pages = 1}));
  const KvCacheOptions options{.capacity = 32 * 64, .prefix_identity = "x"};
  {
    KvCache cache = must(KvCache::paged(halves, options, pools));
    must(cache.reserve(options.capacity));
    cache.commit(options.capacity, std::vector<Token>(options.capacity, 1));
  }
  REQUIRE(pools.figures().cached_bytes == memory.most);
  KvCache cache = must(KvCache::paged(floats, options, pools));
  must(cache.reserve(64));
}

}  // namespace test_kv_pressure
