// The file tier: a session that was suspended goes on with the same bits, what the file cannot take stays in memory, and
// evicted prefixes come back from it.
#include <sys/resource.h>

#include <csignal>
#include <random>
#include <thread>

#include "engine/kv_file.hpp"
#include "kv/held_types.hpp"

namespace test_tiers {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> random_tokens(std::size_t n, std::uint32_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocab);
  return tokens;
}

// While it lives, writes to files fail with EFBIG; the signal that would come first is ignored here, in the host.
class NoWrites {
 public:
  NoWrites() {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::rlimit none = old_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoWrites() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  ::rlimit old_{};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace

TEST_CASE("a suspended and resumed session goes on with the same bits", "[tiers]") {
  for (const std::string model : {"llama-long", "mistral-long", "gpt2"}) {
    const Engine engine = load_golden(model, with_file("resume", std::uint64_t{16} << 20));
    CHECK(!std::filesystem::exists(scratch_file("resume")));  // it has no name any more
    const std::size_t n = std::min<std::size_t>(engine.spec().context, 300);
    const auto tokens = random_tokens(n, engine.spec().vocab_size, 3);
    const std::span<const Token> all(tokens);
    for (const DType dtype : kFewKvTypes) {
      for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
        INFO(model << " " << to_string(dtype) << ", pages of " << page_tokens);
        const KvOptions kv{.dtype = dtype, .page_tokens = page_tokens, .prefix = PrefixReuse::off};
        Session reference = must(engine.session({.kv = kv}));
        const std::vector<float> expected = all_logits(reference, all, n);
        Session session = must(engine.session({.kv = kv}));
        std::vector<float> got = all_logits(session, all.first(n / 2), 17);
        const std::uint64_t checksum = session.kv().checksum(1);
        must(session.suspend());
        CHECK(session.suspended());
        must(session.suspend());  // once is enough
        CHECK(session.tokens().size() == n / 2);
        CHECK(eventually([&] { return session.kv().bytes() == 0; }));
        CHECK(!session.verify());
        CHECK(!session.clone());
        CHECK(!session.save([](std::span<const std::byte>) { return Status(); }));
        if (page_tokens == 32) must(session.prefetch());
        if (page_tokens != 64) must(session.resume());  // else the append does
        if (page_tokens != 64) CHECK(session.kv().checksum(1) == checksum);
        const std::vector<float> rest = all_logits(session, all.subspan(n / 2), 40);
        got.insert(got.end(), rest.begin(), rest.end());
        CHECK(same_bits(got, expected));
        CHECK(!session.suspended());
        CHECK(engine.kv_figures().file_bytes == 0);
      }
    }
  }
}

TEST_CASE("a session can be resumed while its pages are being written, truncated, and dropped", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("race", std::uint64_t{16} << 20));
  const auto tokens = random_tokens(400, engine.spec().vocab_size, 4);
  const KvOptions kv{.page_tokens = 16, .prefix = PrefixReuse::off};
  for (int i = 0; i < 50; ++i) {
    Session session = must(engine.session({.kv = kv}));
    must(session.append(tokens));
    std::vector<std::uint64_t> sums;
    for (std::size_t layer = 0; layer < session.kv().layout().layers.size(); ++layer) sums.push_back(session.kv().checksum(layer));
    must(session.suspend());
    if (i % 3 == 1) must(session.prefetch());
    if (i % 3 == 2) {
      must(session.truncate(100));
      must(session.resume());
      CHECK(session.position() == 100);
      CHECK(must(session.verify()).verdict == Verdict::same);
      continue;
    }
    if (i % 5 == 0) continue;  // dropped as it is
    must(session.resume());
    for (std::size_t layer = 0; layer < sums.size(); ++layer) CHECK(session.kv().checksum(layer) == sums[layer]);
  }
  CHECK(eventually([&] { return engine.kv_figures().used_bytes == 0 && engine.kv_figures().file_bytes == 0; }));
}

TEST_CASE("prefetched pages count as held, and suspending again gives them back", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("prefetch", std::uint64_t{16} << 20));
  Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
  must(session.append(random_tokens(300, engine.spec().vocab_size, 10)));
  const std::uint64_t bytes = session.kv().bytes(), checksum = session.kv().checksum(0);
  must(session.suspend());
  REQUIRE(eventually([&] { return session.kv().bytes() == 0; }));
  must(session.prefetch());
  CHECK(session.kv().bytes() == bytes);
  CHECK(engine.kv_figures().used_bytes == bytes);
  must(session.suspend());
  CHECK(session.kv().bytes() == 0);
  CHECK(engine.kv_figures().used_bytes == 0);
  must(session.resume());
  CHECK(session.kv().checksum(0) == checksum);
}

TEST_CASE("a file's room for sessions that ended is there for the next one", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("room", std::uint64_t{100} << 10));  // for one of them
  for (std::uint32_t i = 0; i < 20; ++i) {
    Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
    must(session.append(random_tokens(300, engine.spec().vocab_size, i)));
    must(session.suspend());  // and dropped while it is being written
  }
}

TEST_CASE("forks share what is suspended until they resume", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("forks", std::uint64_t{16} << 20));
  const auto tokens = random_tokens(200, engine.spec().vocab_size, 5);
  Session session = must(engine.session());
  must(session.append(tokens));
  Session fork = must(session.fork());
  must(session.suspend());
  must(fork.append(std::span<const Token>(tokens).first(30)));
  must(session.append(std::span<const Token>(tokens).first(30)));
  CHECK(session.kv().checksum(0) == fork.kv().checksum(0));
  CHECK(same_bits(session.logits(), fork.logits()));
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("what the file has no room for stays in memory, and says so", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("small", 8192));
  const auto tokens = random_tokens(400, engine.spec().vocab_size, 6);
  Session session = must(engine.session({.kv = {.page_tokens = 16}}));
  must(session.append(tokens));
  const std::uint64_t before = session.kv().checksum(0);
  const Status refused = session.suspend();
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::cache_full);
  CHECK(refused.error().text().find("bytes are needed") != std::string::npos);
  CHECK(!session.suspended());
  CHECK(session.kv().checksum(0) == before);
  CHECK(engine.kv_figures().file_bytes == 0);
  must(session.append(std::span<const Token>(tokens).first(1)));
}

TEST_CASE("a session that finds no room to resume stays suspended", "[tiers]") {
  EngineOptions options = with_file("budget", std::uint64_t{16} << 20);
  const Plan plan = must(Engine::plan(must(ModelFile::open(golden_dir() / "llama-long.gguf")), options));
  options.kv_budget = plan.kv / 2;
  const Engine engine = load_golden("llama-long", options);
  const std::size_t n = engine.spec().context * 2 / 5;
  const auto a = random_tokens(n, engine.spec().vocab_size, 7), b = random_tokens(n, engine.spec().vocab_size, 8);
  Session first = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
  must(first.append(a));
  Session second = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
  CHECK(second.append(b).error().code() == ErrorCode::cache_full);
  must(first.suspend());
  REQUIRE(eventually([&] { return first.kv().bytes() == 0; }));
  must(second.append(b));
  const auto refused = first.append(std::span<const Token>(b).first(1));
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::cache_full);
  CHECK(first.suspended());
  CHECK(first.tokens().size() == n);
  must(second.suspend());
  REQUIRE(eventually([&] { return second.kv().bytes() == 0; }));
  must(first.append(std::span<const Token>(b).first(1)));
  CHECK(must(first.verify()).verdict == Verdict::same);
}

TEST_CASE("a page that cannot be written stays in memory and nothing is lost", "[tiers]") {
  const Engine engine = load_golden("llama-long", with_file("limit", std::uint64_t{1} << 20));
  const auto tokens = random_tokens(300, engine.spec().vocab_size, 9);
  Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
  must(session.append(tokens));
  const std::uint64_t before = session.kv().checksum(0), bytes = session.kv().bytes();
  {
    const NoWrites no_writes;
    must(session.suspend());
    CHECK(eventually([&] { return engine.kv_figures().file_errors > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(session.kv().bytes() == bytes);
  }
  must(session.resume());
  CHECK(session.kv().checksum(0) == before);
}

TEST_CASE("under pressure cached prefixes go to the file and come back", "[tiers]") {
  EngineOptions options = with_file("prefixes", std::uint64_t{64} << 20);
  const Plan plan = must(Engine::plan(must(ModelFile::open(golden_dir() / "llama-long.gguf")), options));
  options.kv_budget = plan.kv;
  const Engine engine = load_golden("llama-long", options);
  const std::size_t n = engine.spec().context / 2;
  const std::uint32_t vocab = engine.spec().vocab_size;
  std::vector<std::vector<float>> expected;
  for (std::uint32_t i = 0; i < 8; ++i) {
    Session session = must(engine.session());
    const Logits logits = must(session.append(random_tokens(n, vocab, i)));
    expected.emplace_back(logits.values.begin(), logits.values.end());
  }
  CHECK(engine.kv_figures().pages_written > 0);
  CHECK(engine.kv_figures().held_bytes <= options.kv_budget);
  std::size_t reused = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    Session session = must(engine.session());
    const Logits logits = must(session.append(random_tokens(n, vocab, i)));
    CHECK(same_bits(logits.values, expected[i]));
    reused += session.reused();
    CHECK(must(session.verify()).verdict == Verdict::same);
  }
  INFO("reused " << reused << " of " << 8 * n << ", read " << engine.kv_figures().pages_read);
  CHECK(engine.kv_figures().pages_read > 0);
  CHECK(reused * plan.kv_per_token > options.kv_budget);  // more than memory could have kept
  engine.trim();
  CHECK(engine.kv_figures().file_bytes == 0);
  CHECK(engine.kv_figures().held_bytes == 0);
}

TEST_CASE("a file that fails is given up, and prefixes are evicted as without one", "[tiers]") {
  EngineOptions options = with_file("broken", std::uint64_t{1} << 20);
  const Plan plan = must(Engine::plan(must(ModelFile::open(golden_dir() / "llama-long.gguf")), options));
  options.kv_budget = plan.kv;
  const Engine engine = load_golden("llama-long", options);
  const NoWrites no_writes;
  for (std::uint32_t i = 0; i < 5; ++i) {
    Session session = must(engine.session());
    must(session.append(random_tokens(engine.spec().context / 2, engine.spec().vocab_size, i)));
  }
  CHECK(engine.kv_figures().file_errors > 0);
  CHECK(engine.kv_figures().pages_written == 0);
  CHECK(engine.kv_figures().evictions > 0);
}

TEST_CASE("threads suspend and resume sessions of one engine", "[tiers]") {
  EngineOptions options = with_file("threads", std::uint64_t{64} << 20);
  const Engine engine = load_golden("llama-long", options);
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto stem = random_tokens(150, vocab, 1);
  Session reference = must(engine.session());
  must(reference.append(stem));
  const std::vector<float> expected(reference.logits().begin(), reference.logits().end());
  std::vector<std::thread> threads;
  std::vector<int> wrong(6, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        auto session = engine.session({.kv = {.salt = i % 2 == 0 ? "" : std::to_string(t)}});
        if (!session || !session->append(stem)) return void(++wrong[t]);
        if (!session->suspend() || (i % 3 == 0 && !session->prefetch()) || !session->resume()) ++wrong[t];
        must(session->truncate(stem.size() - 1));
        if (!session->append(std::span<const Token>(stem).last(1)) || !same_bits(session->logits(), expected)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(6, 0));
}

TEST_CASE("a file that cannot be had is an error when the engine is made", "[tiers]") {
  const auto path = golden_dir() / "llama-gqa.gguf";
  const auto refused = [&](const EngineOptions& options, ErrorCode code) {
    const auto engine = Engine::load(path, options);
    REQUIRE(!engine);
    INFO(engine.error().text());
    CHECK(engine.error().code() == code);
  };
  EngineOptions options = with_file("wrong", 100);
  refused(options, ErrorCode::invalid_argument);
  options.kv_file_bytes = 1 << 20;
  options.kv_file = golden_dir() / "llama-long.gguf";  // somebody's file
  refused(options, ErrorCode::invalid_argument);
  options.kv_file = "/nowhere/pages";
  refused(options, ErrorCode::not_found);
  options.kv_file = scratch_file("wrong");
  options.kv_file_bytes = std::uint64_t{1} << 60;
  refused(options, ErrorCode::io);
  CHECK(!std::filesystem::exists(options.kv_file));

  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  CHECK(session.suspend().error().code() == ErrorCode::invalid_state);
  Session contiguous = must(load_golden("llama-gqa", with_file("none", 1 << 20)).session({.kv = {.kind = KvKind::contiguous}}));
  CHECK(contiguous.suspend().error().code() == ErrorCode::invalid_state);
}

}  // namespace test_tiers
