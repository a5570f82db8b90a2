// Requests with a budget of tokens: the same tokens as alone, whatever else is in the steps, and room for more of them.
#include <tessera/scheduler/scheduler.hpp>

#include "engine/kv_rig.hpp"

namespace test_scheduler_budgets {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr TokenChoice kChoices[] = {TokenChoice::window, TokenChoice::h2o, TokenChoice::snapkv};

EngineOptions counting(EngineOptions options = {}) {
  options.kv.budget = {.tokens = 160, .choice = TokenChoice::snapkv};
  return options;
}

struct Wish {
  std::vector<Token> prompt;
  TokenChoice choice;
  std::uint32_t samples;
};

std::vector<Wish> wishes(const KvRig& rig) {
  std::vector<Wish> all;
  const std::size_t lengths[] = {300, 150, 40, 220, 300, 161, 90};
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    const auto prompt = rig.part(i % 3, lengths[i]);
    all.push_back({{prompt.begin(), prompt.end()}, kChoices[i % 3], i == 3 ? 2u : 1u});
  }
  return all;
}

Sampler sampler_of(std::size_t wish, std::uint32_t sample) {
  Sampler sampler = sampling::chain().temperature(1.1f).seed(wish).build();
  sampler.reseed(wish, sampler.stream() + sample);
  return sampler;
}
KvOptions kv_of(const Wish& wish) { return {.budget = {.tokens = 160, .choice = wish.choice}}; }

constexpr std::size_t kDrawn = 70;

std::vector<Token> alone(const KvRig& rig, const std::vector<Wish>& all, std::size_t i, std::uint32_t sample) {
  Session session = rig.session(kv_of(all[i]));
  must(session.append(all[i].prompt));
  Sampler sampler = sampler_of(i, sample);
  std::vector<Token> tokens;
  for (const auto& piece : session.generate(sampler, {.max_tokens = kDrawn, .end_of_generation = EndOfGeneration::ignore})) {
    tokens.push_back(must(Result<Piece>(piece)).token);
  }
  return tokens;
}

void check_all(const KvRig& rig, std::uint32_t rows, const KvRig& lone) {
  const std::vector<Wish> all = wishes(lone);
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = rows, .max_running = 8}}));
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < all.size(); ++i) {
    handles.push_back(must(scheduler.submit({.prompt = all[i].prompt,
                                             .session_options = {.kv = kv_of(all[i])},
                                             .sampler = sampler_of(i, 0),
                                             .generate = {.max_tokens = kDrawn, .end_of_generation = EndOfGeneration::ignore},
                                             .samples = all[i].samples,
                                             .session_at_end = SessionAtEnd::keep})));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i, rows, static_cast<int>(all[i].choice));
    std::vector<std::vector<Token>> drawn(all[i].samples);
    while (auto piece = handles[i].next()) drawn[piece->sample].push_back(piece->piece.token);
    must(handles[i].status());
    for (std::uint32_t sample = 0; sample < all[i].samples; ++sample) {
      CHECK(drawn[sample] == alone(lone, all, i, sample));
      std::optional<Session> session = handles[i].take_session(sample);
      REQUIRE(session);
      CHECK(session->position() < 160);
      CHECK(must(session->verify()).verdict == Verdict::same);
    }
  }
}

}  // namespace

TEST_CASE("requests with a budget draw what they draw alone", "[scheduler]") {
  const KvRig rig(counting());
  for (const std::uint32_t rows : {23u, 512u}) check_all(rig, rows, rig);
}

TEST_CASE("requests with a budget draw what they draw alone when pages are short", "[scheduler]") {
  const KvRig lone(counting());
  EngineOptions options = counting();
  options.kv_budget = lone.page_bytes() * 24;
  const KvRig rig(options);
  const std::vector<Wish> all = wishes(lone);
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 64, .max_running = 8}}));
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < all.size(); ++i) {
    handles.push_back(must(scheduler.submit({.prompt = all[i].prompt,
                                             .session_options = {.kv = kv_of(all[i])},
                                             .sampler = sampler_of(i, 0),
                                             .generate = {.max_tokens = kDrawn, .end_of_generation = EndOfGeneration::ignore}})));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    std::vector<Token> drawn;
    while (auto piece = handles[i].next()) drawn.push_back(piece->piece.token);
    must(handles[i].status());
    CHECK(drawn == alone(lone, all, i, 0));
  }
}

TEST_CASE("a request with a budget may draw more than its context has room for", "[scheduler]") {
  const KvRig rig(counting());
  Scheduler scheduler = must(Scheduler::create(rig.engine, {}));
  RequestHandle handle = must(scheduler.submit({.prompt = {rig.tokens.begin(), rig.tokens.begin() + 200},
                                                .session_options = {.kv = {.budget = {.tokens = 128, .choice = TokenChoice::window}}, .context = 256},
                                                .generate = {.max_tokens = 400, .end_of_generation = EndOfGeneration::ignore}}));
  std::size_t n = 0;
  while (handle.next()) ++n;
  must(handle.status());
  CHECK(n == 400);
}

}  // namespace test_scheduler_budgets
