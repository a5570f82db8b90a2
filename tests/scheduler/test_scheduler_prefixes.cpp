// What prefixes save in a scheduler: tokens that are computed once for many, pages that admission need not find, and nobody
// who waits for somebody for ever.
#include <map>

#include <tessera/scheduler/scheduler.hpp>

#include "engine/models.hpp"
#include "engine/inside.hpp"
#include "engine/views.hpp"
#include "kv/kv_watch.hpp"

namespace test_scheduler_prefixes {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kPage = 16;

Engine load_story(EngineOptions options = {}) {
  options.threads = 2;
  options.kv.page_tokens = kPage;
  return load_stories(options, "tessera-stories-draft");
}
std::uint64_t page_bytes() { return must(load_story().session()).kv().layout().bytes_per_token() * kPage; }

std::vector<Token> prompt_of(std::size_t shared, std::size_t own, int salt) {
  std::vector<Token> prompt;
  for (std::size_t i = 0; i < shared; ++i) prompt.push_back(static_cast<Token>((i * 7 + 3) % 200));
  for (std::size_t i = 0; i < own; ++i) prompt.push_back(static_cast<Token>((i * 11 + 13 * static_cast<std::size_t>(salt) + 1) % 200));
  return prompt;
}
Request request_of(std::vector<Token> prompt, std::size_t tokens) {
  return {.prompt = std::move(prompt), .generate = {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore}};
}

std::vector<Token> alone(const std::vector<Token>& prompt, std::size_t tokens) {
  static const Engine engine = load_story({.kv = {.prefix = PrefixReuse::off}});
  Session session = must(engine.session());
  must(session.append(prompt));
  Sampler greedy = sampling::chain().greedy().build();
  std::vector<Token> answer;
  for (const auto& piece : session.generate(greedy, {.max_tokens = tokens, .end_of_generation = EndOfGeneration::ignore})) {
    answer.push_back(must(piece).token);
  }
  return answer;
}
std::vector<Token> answer(RequestHandle& handle) {
  std::vector<Token> tokens;
  while (auto piece = handle.next()) tokens.push_back(piece->piece.token);
  must(handle.status());
  return tokens;
}

}  // namespace

TEST_CASE("prompts that begin alike and come at once are computed once", "[scheduler]") {
  const std::uint32_t rows = GENERATE(20u, 512u);  // of a step: the prompt in pieces, or whole
  const std::size_t own = GENERATE(std::size_t{0}, std::size_t{5});
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.seconds = 10.0, .rows = rows}}));
  constexpr std::size_t kRequests = 6, kShared = 6 * kPage + 4, kTokens = 7;
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < kRequests; ++i) {
    handles.push_back(must(scheduler.submit(request_of(prompt_of(kShared, own, static_cast<int>(i)), kTokens))));
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    CHECK(answer(handles[i]) == alone(prompt_of(kShared, own, static_cast<int>(i)), kTokens));
    CHECK(handles[i].figures().reused_tokens == (i == 0 ? 0 : 6 * kPage));
  }
  // The first one's prompt, what follows the shared pages of the others', and a row for each token but the first.
  const std::size_t computed = kShared + own + (kRequests - 1) * (4 + own) + kRequests * (kTokens - 1);
  CHECK(scheduler.figures().rows.sum() == static_cast<double>(computed));
}

TEST_CASE("a request goes on by itself when the one that it waits for ends, pauses or gives way", "[scheduler]") {
  const auto prompt = prompt_of(8 * kPage, 3, 1);
  const auto expected = alone(prompt, 4);
  for (int at = 0; at < 9; ++at) {
    for (const bool pauses : {false, true}) {
      const Engine engine = load_story();
      Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = kPage}}));
      RequestHandle first = must(scheduler.submit(request_of(prompt, 4)));
      RequestHandle second = must(scheduler.submit(request_of(prompt, 4)));
      for (int i = 0; i < at; ++i) must(scheduler.step());
      if (pauses) first.pause();
      else first.cancel();
      INFO("at " << at << ", pauses " << pauses);
      CHECK(answer(second) == expected);
      if (!pauses) continue;
      first.resume();
      CHECK(answer(first) == expected);
    }
  }
}

TEST_CASE("one that is served before the other does not wait for it", "[scheduler]") {
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine, {.policy = by_priority(), .limits = {.rows = kPage}}));
  const auto prompt = prompt_of(8 * kPage, 3, 1);
  Request slow = request_of(prompt, 4), urgent = request_of(prompt, 4);
  slow.priority = 1;
  RequestHandle first = must(scheduler.submit(std::move(slow)));
  for (int i = 0; i < 3; ++i) must(scheduler.step());
  RequestHandle second = must(scheduler.submit(std::move(urgent)));
  // In the step that computes the other's last page it may begin.
  for (int i = 0; i < 6; ++i) must(scheduler.step());
  CHECK(answer(second) == alone(prompt, 4));
  CHECK(answer(first) == alone(prompt, 4));
}

TEST_CASE("those behind one that waits for a prefix are admitted, but not in its place", "[scheduler]") {
  const Engine engine = load_story();
  const auto shared = prompt_of(8 * kPage, 0, 0);
  const std::uint32_t places = GENERATE(2u, 3u);
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 3 * kPage, .max_running = places}}));
  RequestHandle first = must(scheduler.submit(request_of(shared, 30)));
  must(scheduler.step());
  RequestHandle second = must(scheduler.submit(request_of(shared, 30)));
  RequestHandle other = must(scheduler.submit(request_of(prompt_of(0, 5, 3), 30)));
  for (int i = 0; i < 3; ++i) must(scheduler.step());  // the prompt is done in two, and the last has room for both
  CHECK(second.state() == RequestState::running);
  CHECK((other.state() == RequestState::running) == (places == 3));
}

TEST_CASE("admission counts what the prefix index has: pages in use cost no room", "[scheduler]") {
  const bool same = GENERATE(true, false);
  // A prompt takes 9 pages, an answer a page: of 14 two have room only if they share.
  const Engine engine = load_story({.kv_budget = 14 * page_bytes()});
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.headroom = 0.0}}));
  const auto one = prompt_of(8 * kPage, 6, 1);
  const auto two = same ? prompt_of(8 * kPage, 6, 2) : prompt_of(0, 8 * kPage + 6, 2);
  RequestHandle first = must(scheduler.submit(request_of(one, 40)));
  RequestHandle second = must(scheduler.submit(request_of(two, 8)));
  for (int i = 0; i < 4; ++i) must(scheduler.step());
  CHECK(scheduler.figures().running == (same ? 2u : 1u));
  CHECK(answer(second) == alone(two, 8));
  CHECK(answer(first) == alone(one, 40));
  const SchedulerFigures figures = scheduler.figures();
  CHECK(figures.recomputed + figures.suspended + figures.out_of_room == 0);
}

TEST_CASE("prefix_first serves those whose beginning is known before those that came earlier", "[scheduler]") {
  const Engine engine = load_story();
  Scheduler scheduler = must(Scheduler::create(engine, {.policy = prefix_first(0.0), .limits = {.max_running = 1}}));
  const auto shared = prompt_of(8 * kPage, 0, 0);
  RequestHandle first = must(scheduler.submit(request_of(shared, 12)));
  must(scheduler.step());  // it has the place
  RequestHandle stranger = must(scheduler.submit(request_of(prompt_of(0, 6 * kPage, 5), 12)));
  RequestHandle known = must(scheduler.submit(request_of(prompt_of(8 * kPage, 6, 1), 12)));
  (void)answer(known);
  CHECK(stranger.figures().scheduled < 0.0);
  CHECK(answer(stranger) == alone(prompt_of(0, 6 * kPage, 5), 12));
}

TEST_CASE("what a request gave up and the index still has is not computed again", "[scheduler]") {
  const Engine engine = load_story({.kv_budget = 12 * page_bytes()});
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.headroom = 0.0}}));
  // Both fit in the beginning; then one of them gives way, whose first pages the other has as well.
  const auto one = prompt_of(4 * kPage, 3, 1), two = prompt_of(4 * kPage, 3, 2);
  RequestHandle first = must(scheduler.submit(request_of(one, 70)));
  RequestHandle second = must(scheduler.submit(request_of(two, 70)));
  CHECK(answer(first) == alone(one, 70));
  CHECK(answer(second) == alone(two, 70));
  const SchedulerFigures figures = scheduler.figures();
  REQUIRE(figures.recomputed > 0);
  CHECK(figures.recomputed_tokens == first.figures().recomputed_tokens + second.figures().recomputed_tokens);
  const double whole = static_cast<double>(one.size() + two.size() - 4 * kPage + 2 * 69);
  CHECK(figures.rows.sum() == whole + static_cast<double>(figures.recomputed_tokens));
}

namespace {

// The content of an index, as a router has it.
struct Mirror {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Token>> pages;  // hash: tokens from the beginning
  std::size_t cleared = 0, removed = 0;
  bool is_consistent = true;

  void apply(const KvEvent& event) {
    const std::pair key(event.page.low, event.page.high);
    switch (event.kind) {
      case KvEvent::Kind::cleared:
        pages.clear();
        ++cleared;
        break;
      case KvEvent::Kind::removed:
        ++removed;
        is_consistent = is_consistent && pages.erase(key) == 1;
        break;
      case KvEvent::Kind::stored: {
        const auto parent = pages.find({event.before.low, event.before.high});
        std::vector<Token> tokens = parent == pages.end() ? std::vector<Token>() : parent->second;
        tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
        is_consistent = is_consistent && event.tokens.size() == kPage && pages.emplace(key, std::move(tokens)).second;
      }
    }
  }
};

}  // namespace

TEST_CASE("whoever applies the events of the prefix index has its content after each step", "[scheduler]") {
  const Engine engine = load_story({.kv_budget = 16 * page_bytes()});
  Session session = must(engine.session());
  const KvPools& pools = detail::view_of(*detail::view_of(*state_of(session)).shared).kv_pools;
  Mirror mirror;
  Scheduler scheduler = must(Scheduler::create(engine, {.limits = {.rows = 40, .max_running = 4, .headroom = 0.0},
                                                        .on_kv_event = [&](const KvEvent& event) { mirror.apply(event); }}));
  std::vector<RequestHandle> handles;
  for (int i = 0; i < 20; ++i) {
    handles.push_back(must(scheduler.submit(request_of(prompt_of(static_cast<std::size_t>(i % 4) * 20, 20, i), 24))));
  }
  std::size_t most = 0;
  while (must(scheduler.step())) {
    Mirror real;  // of somebody who comes now and is told all
    for (const KvEvent& event : detail::KvWatch(pools).take()) real.apply(event);
    REQUIRE(real.is_consistent);
    REQUIRE(mirror.is_consistent);
    REQUIRE(mirror.pages == real.pages);
    most = std::max(most, real.pages.size());
    for (RequestHandle& handle : handles) {
      while (handle.try_next()) {}
      must(handle.status());
    }
  }
  CHECK(scheduler.figures().finished == 20);
  CHECK(mirror.cleared == 1);
  CHECK(mirror.removed > 20);  // the room is small
  CHECK(most > 5);
  // What it says is known is reused.
  const auto longest = std::ranges::max_element(mirror.pages, {}, [](const auto& page) { return page.second.size(); })->second;
  std::vector<Token> prompt = longest;
  prompt.push_back(1);
  must(session.append(prompt));
  CHECK(session.reused() == longest.size());
}

}  // namespace test_scheduler_prefixes
