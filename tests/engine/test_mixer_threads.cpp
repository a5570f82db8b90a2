// Threads whose sessions of a model with recurrent layers, latent attention or an MTP head share prompts, checkpoints and forks, of one
// engine: each session has the bits that it has alone.
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <thread>

#include "engine/kv_twins.hpp"
#include "engine/thread_lives.hpp"

namespace test_mixer_threads {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kThreads = 8, kLives = 12, kLongest = 56;  // of the models' 64
constexpr const char* kModels[] = {"qwen35", "nemotron_h_moe", "deepseek-v3", "mtp/glm4moe", "heads/eagle3"};

Engine load(const char* model, EngineOptions options = {}) {
  options.threads = 2;
  options.step_rows = 16;
  if (std::string_view(model).starts_with("mtp/")) options.mtp = MtpHeads::load;
  if (std::string_view(model).starts_with("heads/")) {
    options.draft_heads = golden_dir() / "heads" / "llama-gqa" / std::string_view(model).substr(6);
    model = "llama-gqa";
  }
  return load_golden(model, std::move(options));
}

// One session's way, decided by its seed alone. Prompts begin with one of three stems. Its logits, one after another; nullopt:
// there was no room for it.
std::optional<std::vector<float>> a_life(const Engine& engine, const KvOptions& kv, std::uint32_t seed, Outcome& outcome) {
  std::mt19937 random(seed);
  const std::vector<Token> tokens = make_tokens(100 + seed % 3, 2 * kLongest, 96);
  Gathered got{outcome};
  auto session = engine.session({.kv = kv});
  if (!session) return std::nullopt;
  got.append(*session, std::span(tokens).first(17 + random() % 24));
  for (int i = 0; i < 8 && !got.full; ++i) {
    const std::size_t size = session->tokens().size();
    if (size + 10 > kLongest) {
      got.full = got.full || !session->truncate(1 + random() % size);
      continue;
    }
    switch (random() % 4) {
      case 0: {  // two that go different ways
        auto fork = session->fork();
        got.full = got.full || !fork;
        if (fork) got.append(*fork, make_tokens(random(), 3, 96));
        got.append(*session, std::span(tokens).subspan(size, 1));
        break;
      }
      case 1:
        got.full = got.full || !session->truncate(size / 2 + 1);
        got.append(*session, std::span(tokens).subspan(80, 4));
        break;
      case 2:
        must(session->clear());
        got.append(*session, std::span(tokens).first(33 + random() % 8));
        break;
      default: got.append(*session, std::span(tokens).subspan(size, 1 + random() % 10));
    }
  }
  if (got.full) return std::nullopt;
  return got.logits;
}

// What each seed gives alone, without sharing.
std::vector<std::vector<float>> alone(const char* model, KvOptions kv) {
  kv.prefix = PrefixReuse::off;
  Outcome outcome;
  std::vector<std::vector<float>> lives;
  for (std::uint32_t seed = 0; seed < kLives; ++seed) lives.push_back(a_life(load(model), kv, seed, outcome).value());
  REQUIRE(outcome.wrong == 0);
  return lives;
}

// Each thread lives some of the lives, one after another. One that finds no room gives up all it has and tries again when it is
// its turn: of many who try at once none might ever find any.
void live_together(const Engine& engine, const KvOptions& kv, const std::vector<std::vector<float>>& expected, Outcome& outcome) {
  std::mutex turn;
  in_threads(kThreads, [&](std::size_t i) {
    for (std::size_t round = 0; round < 4; ++round) {
      const auto seed = static_cast<std::uint32_t>((i + 3 * round) % kLives);
      std::optional<std::vector<float>> got = a_life(engine, kv, seed, outcome);
      if (!got) {
        const std::scoped_lock lock(turn);
        for (int tries = 0; !got && tries < 2000; ++tries) {
          ++outcome.full;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          got = a_life(engine, kv, seed, outcome);
        }
      }
      outcome.expect(got && same_bits(*got, expected[seed]));
      if (round == 2) engine.trim();
      const KvFigures figures = engine.kv_figures();
      outcome.expect(figures.held_bytes == figures.used_bytes + figures.cached_bytes + figures.free_bytes);
    }
  });
}

}  // namespace

TEST_CASE("many threads that share prompts, states and forks have the bits of one that is alone", "[threads][recurrent][latent][mtp]") {
  for (const char* model : kModels) {
    INFO(model);
    const KvOptions kv{.page_tokens = 16};
    const auto expected = alone(model, kv);
    const Engine engine = load(model, {.freed_pages = FreedPages::fill_nan});
    Outcome outcome;
    live_together(engine, kv, expected, outcome);
    CHECK(outcome.wrong == 0);
    CHECK(outcome.full == 0);
    CHECK(engine.kv_figures().used_bytes == 0);
  }
}

TEST_CASE("many threads with too little room for pages and states have the bits of one that is alone",
          "[threads][recurrent][latent][mtp]") {
  for (const char* model : kModels) {
    INFO(model);
    const KvOptions kv{.page_tokens = 16};
    const auto expected = alone(model, kv);
    const std::uint64_t one = [&] {
      const Engine engine = load(model);
      Session session = must(engine.session({.kv = kv}));
      must(session.append(make_tokens(1, kLongest, 96)));
      return engine.kv_figures().used_bytes;
    }();
    const std::uint64_t budget = 2 * one;
    const Engine engine = load(model, {.kv_budget = budget, .freed_pages = FreedPages::fill_nan});
    Outcome outcome;
    // On a busy machine threads may run one after another, and each find room.
    for (int tries = 0; tries < 20 && (outcome.full == 0 || engine.kv_figures().evictions == 0); ++tries) live_together(engine, kv, expected, outcome);
    CHECK(outcome.wrong == 0);
    CHECK(outcome.full > 0);
    CHECK(engine.kv_figures().evictions > 0);
    CHECK(engine.kv_figures().held_bytes <= budget);
    CHECK(engine.kv_figures().used_bytes == 0);
  }
}

}  // namespace test_mixer_threads
