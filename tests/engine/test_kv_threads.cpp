// Threads whose sessions share prompts and forks, of one engine: whatever the others do to the pages, each session has
// the bits that it has alone.
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "engine/kv_twins.hpp"
#include "engine/thread_lives.hpp"

namespace test_kv_threads {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kThreads = 8;
constexpr std::size_t kLongest = 120;
constexpr DType kTypes[] = {DType::f32, DType::int8};

std::vector<Token> stem(std::size_t i) { return make_tokens(100 + i, 2 * kLongest, 96); }

// One session's way, decided by its seed alone: what is appended, and how the session is copied and cut on the way.
// Prompts begin with one of three stems. Its logits, one after another; nullopt: there was no page for it.
std::optional<std::vector<float>> a_life(const Engine& engine, const KvOptions& kv, std::uint32_t seed,
                                         Outcome& outcome) {
  std::mt19937 random(seed);
  const std::vector<Token> tokens = stem(seed % 3);
  Gathered got{outcome};
  auto session = engine.session({.kv = kv});
  outcome.expect(session.has_value());
  if (!session) return got.logits;
  got.append(*session, std::span(tokens).first(20 + random() % 80));
  for (int i = 0; i < 8 && !got.full; ++i) {
    const std::size_t size = session->tokens().size();
    const auto rest = std::span(tokens).subspan(size).first(1 + random() % 20);
    switch (random() % 5) {
      case 0: {  // two that go different ways
        auto fork = session->fork();
        outcome.expect(fork.has_value());
        if (fork) got.append(*fork, make_tokens(random(), 3, 96));
        got.append(*session, rest.first(1));
        break;
      }
      case 1:
        must(session->truncate(size / 2 + 1));
        got.append(*session, std::span(tokens).subspan(200, 4));
        break;
      case 2: {
        const Status removed = session->remove(size / 3, size / 2);
        got.full = got.full || !removed;
        outcome.expect(removed || removed.error().code() == ErrorCode::cache_full);
        if (removed) got.append(*session, rest.first(1));
        break;
      }
      case 3:
        must(session->clear());
        got.append(*session, std::span(tokens).first(33 + random() % 40));
        break;
      default: got.append(*session, rest);
    }
    if (session->tokens().size() > kLongest) must(session->truncate(40));
    if (session->logits().empty()) got.append(*session, std::span(tokens).first(1));
  }
  if (got.full) return std::nullopt;
  return got.logits;
}

Engine load(EngineOptions options) {
  options.threads = 2;
  options.step_rows = 16;
  return load_golden("llama-long", std::move(options));
}

// What each seed gives alone, without sharing.
std::vector<std::vector<float>> alone(const KvOptions& kv, std::size_t n, Numerics numerics = Numerics::automatic) {
  KvOptions lone = kv;
  lone.prefix = PrefixReuse::off;
  Outcome outcome;
  std::vector<std::vector<float>> lives;
  for (std::uint32_t seed = 0; seed < n; ++seed) {
    const Engine engine = load({.numerics = numerics});
    lives.push_back(a_life(engine, lone, seed, outcome).value());
  }
  REQUIRE(outcome.wrong == 0);
  return lives;
}

}  // namespace

TEST_CASE("many threads that share prompts and fork: the bits of one that is alone", "[threads]") {
  constexpr std::size_t kLives = 16;
  for (const DType dtype : kTypes) {
    const KvOptions kv{.dtype = dtype, .page_tokens = 16};
    const auto expected = alone(kv, kLives);
    const Engine engine = load({.freed_pages = FreedPages::fill_nan});
    Outcome outcome;
    in_threads(kThreads, [&](std::size_t i) {
      for (std::size_t round = 0; round < 6; ++round) {
        const auto seed = static_cast<std::uint32_t>((i + 3 * round) % kLives);
        const auto got = a_life(engine, kv, seed, outcome);
        outcome.expect(got && same_bits(*got, expected[seed]));
        if (round == 3) engine.trim();
        const KvFigures figures = engine.kv_figures();
        outcome.expect(figures.held_bytes == figures.used_bytes + figures.cached_bytes + figures.free_bytes);
      }
    });
    CHECK(outcome.wrong == 0);
    CHECK(outcome.full == 0);
    CHECK(engine.kv_figures().used_bytes == 0);
    CHECK(engine.kv_figures().hits > 0);
    CHECK(engine.kv_figures().copies > 0);
  }
}

TEST_CASE("many threads with too few pages: those that get them have the same bits, and the others' turn comes",
          "[threads]") {
  constexpr std::size_t kLives = 16;
  for (const DType dtype : kTypes) {
    const KvOptions kv{.dtype = dtype, .page_tokens = 16};
    const Numerics numerics = Numerics::reference;  // slow enough for lives to meet
    const auto expected = alone(kv, kLives, numerics);
    const std::uint64_t page = must(load({}).session({.kv = kv})).kv().layout().page_bytes();
    const std::uint64_t budget = 24 * page;  // of eight pages each would like
    const Engine engine = load({.numerics = numerics, .kv_budget = budget, .freed_pages = FreedPages::fill_nan});
    Outcome outcome;
    in_threads(kThreads, [&](std::size_t i) {
      // Four lives each, and more until some have met: when threads run is the system's to say.
      for (std::size_t round = 0; round < 4 || (outcome.full == 0 && round < 300); ++round) {
        const auto seed = static_cast<std::uint32_t>((i + 3 * round) % kLives);
        std::optional<std::vector<float>> got;
        // Without a page it gives up all it has, and tries again.
        for (std::uint32_t tries = 0; !(got = a_life(engine, kv, seed, outcome)) && tries < 2000; ++tries) {
          ++outcome.full;
          std::this_thread::sleep_for(std::chrono::microseconds(200 * (1 + (i + tries) % 7)));
        }
        outcome.expect(got && same_bits(*got, expected[seed]));
        outcome.expect(engine.kv_figures().held_bytes <= budget);
      }
    });
    CHECK(outcome.wrong == 0);
    CHECK(outcome.full > 0);
    CHECK(engine.kv_figures().evictions > 0);
    CHECK(engine.kv_figures().used_bytes == 0);
  }
}

TEST_CASE("forks of one session go on in many threads at once", "[threads]") {
  for (const DType dtype : kTypes) {
    const Engine engine = load({.freed_pages = FreedPages::fill_nan});
    const auto prompt = make_tokens(1, 70, 96);
    std::vector<std::vector<float>> expected;
    std::vector<std::vector<Token>> tails;
    for (std::size_t i = 0; i < kThreads; ++i) {
      tails.push_back(make_tokens(50 + i, 30, 96));
      std::vector<Token> whole = prompt;
      whole.insert(whole.end(), tails[i].begin(), tails[i].end());
      expected.push_back(lone_logits(engine, dtype, whole));
    }
    for (int round = 0; round < 5; ++round) {
      std::optional<Session> parent = must(engine.session({.kv = {.dtype = dtype}}));
      must(parent->append(prompt));
      std::vector<Session> forks;
      for (std::size_t i = 0; i < kThreads; ++i) forks.push_back(must(parent->fork()));
      parent.reset();  // the last of them writes in place
      Outcome outcome;
      in_threads(kThreads, [&](std::size_t i) {
        Session session = std::move(forks[i]);
        auto fork = session.fork();
        outcome.expect(fork.has_value());
        for (const Token token : tails[i]) outcome.expect(session.append({&token, 1}).has_value());
        outcome.expect(same_bits(session.logits(), expected[i]));
        const auto logits = fork ? fork->append(tails[i]) : Result<Logits>(Logits{});
        outcome.expect(logits && same_bits(logits->values, expected[i]));
      });
      CHECK(outcome.wrong == 0);
    }
    CHECK(engine.kv_figures().used_bytes == 0);
  }
}

TEST_CASE("tenants in threads do not meet", "[threads]") {
  const Engine engine = load({.kv_budget = std::uint64_t{16} << 20});
  const auto prompt = make_tokens(1, 100, 96);
  const std::vector<float> expected = lone_logits(engine, DType::f32, prompt);
  Outcome outcome;
  std::vector<Session> kept;
  for (std::size_t i = 0; i < kThreads; ++i) kept.push_back(must(engine.session({.kv = {.salt = std::to_string(i)}})));
  in_threads(kThreads, [&](std::size_t i) {
    outcome.expect(kept[i].append(prompt).has_value());
    for (int round = 0; round < 5; ++round) {
      auto session = engine.session({.kv = {.salt = std::to_string(i)}});
      const auto logits = session ? session->append(prompt) : Result<Logits>(Logits{});
      outcome.expect(logits && same_bits(logits->values, expected));
      outcome.expect(session && session->reused() == 96);
    }
  });
  CHECK(outcome.wrong == 0);
  std::set<const std::byte*> pages;
  for (const Session& session : kept) {
    CHECK(session.reused() == 0);
    for (std::size_t page = 0; page < 4; ++page) CHECK(pages.insert(session.kv().view().pages[0][page]).second);
  }
}

}  // namespace test_kv_threads
