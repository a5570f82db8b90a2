// Pages are few, or an append fails half way: what is then given up, what is refused and in which words, and that
// sessions are as they were.
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "engine/kv_rig.hpp"

namespace test_kv_budget {

using namespace tessera;
using namespace tessera::test;

namespace {

// Of KV pages of llama-long in F32, 32 tokens each.
std::uint64_t page_bytes() {
  static const std::uint64_t bytes = KvRig().page_bytes();
  return bytes;
}

EngineOptions with_pages(std::uint64_t pages, std::uint32_t step_rows = 128) {
  return {.step_rows = step_rows, .kv_budget = pages * page_bytes()};
}

struct Expected {
  std::uint64_t used = 0, cached = 0;  // pages
  std::uint64_t hits = 0, misses = 0, saved = 0, evictions = 0, copies = 0;
};

void check_figures(const KvRig& rig, const Expected& expected) {
  const KvFigures figures = rig.figures();
  CHECK(figures.used_bytes == expected.used * page_bytes());
  CHECK(figures.cached_bytes == expected.cached * page_bytes());
  CHECK(figures.held_bytes == figures.used_bytes + figures.cached_bytes + figures.free_bytes);
  CHECK(figures.hits == expected.hits);
  CHECK(figures.misses == expected.misses);
  CHECK(figures.tokens_saved == expected.saved);
  CHECK(figures.evictions == expected.evictions);
  CHECK(figures.copies == expected.copies);
}

// Memory that can be told to give nothing more.
class Stingy final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override { return refuses ? nullptr : below_.allocate(bytes); }
  void release(void* base, std::size_t bytes) noexcept override { below_.release(base, bytes); }
  std::size_t granularity() const noexcept override { return below_.granularity(); }
  void* reserve(std::size_t bytes) noexcept override { return below_.reserve(bytes); }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    return !refuses && below_.commit(base, offset, bytes);
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    below_.decommit(base, offset, bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override { below_.unreserve(base, bytes); }

  std::atomic<bool> refuses = false;

 private:
  Memory& below_ = system_memory();
};

}  // namespace

TEST_CASE("without a page left an append says how many bytes it lacks, and changes nothing", "[budget]") {
  const KvRig rig(with_pages(8));
  Session other = rig.given(make_tokens(2, 70, 96));  // three pages
  Session session = rig.given(rig.prompt(40));        // two
  const Snapshot before(session), before_other(other);
  const auto full = session.append(rig.part(40, 150));  // 190 tokens are four pages more
  REQUIRE(!full);
  CHECK(full.error().code() == ErrorCode::cache_full);
  const std::string message = full.error().message();
  INFO(message);
  CHECK(message.find(std::to_string(4 * page_bytes()) + " bytes of KV pages are needed") != std::string::npos);
  CHECK(message.find(std::to_string(3 * page_bytes()) + " are free") != std::string::npos);
  CHECK(message.find(std::to_string(8 * page_bytes())) != std::string::npos);
  CHECK(Snapshot(session) == before);
  CHECK(Snapshot(other) == before_other);
  check_figures(rig, {.used = 5, .misses = 2});

  must(session.append(rig.part(40, 110)));  // as much as there is
  CHECK(as_if_alone(session));
  const auto nothing = other.append(rig.part(0, 60));
  REQUIRE(!nothing);
  CHECK(nothing.error().message().find(" 0 are free") != std::string::npos);
  CHECK(Snapshot(other) == before_other);
  must(other.append(rig.part(0, 20)));  // its last page has room
  CHECK(as_if_alone(other));
  must(session.truncate(96));
  must(other.append(rig.part(20, 40)));
  CHECK(as_if_alone(other));
  CHECK(rig.figures().held_bytes <= 8 * page_bytes());
}

TEST_CASE("a session that lacks pages stays as it was, and the others of its batch go on", "[budget]") {
  const KvRig rig(with_pages(8));
  const Session known = rig.given(rig.prompt(70));
  Session a = rig.given(rig.part(100, 20)), b = rig.session();
  const Snapshot before_a(a), before_b(b);
  Batch batch;
  must(batch.add(b, rig.prompt(100)));  // two pages are taken over
  must(batch.add(a, rig.part(120, 200)));
  {
    Batch alone;
    must(alone.add(a, rig.part(120, 200)));
    const auto outputs = rig.engine.forward(alone);
    REQUIRE(!outputs);
    CHECK(outputs.error().code() == ErrorCode::cache_full);
    CHECK(Snapshot(b) == before_b);
  }
  const Outputs outputs = must(rig.engine.forward(batch));
  CHECK(outputs.outcome(0));
  REQUIRE(!outputs.outcome(100));
  CHECK(outputs.outcome(100).error().code() == ErrorCode::cache_full);
  CHECK(outputs.status().error().code() == ErrorCode::cache_full);
  CHECK(outputs.row(299).empty());
  CHECK(Snapshot(a) == before_a);
  CHECK(rig.figures().used_bytes == 6 * page_bytes());
  CHECK(b.reused() == 64);
  CHECK(same_bits(outputs.row(99), b.logits()));
  CHECK(as_if_alone(b));
  must(a.append(rig.part(120, 20)));
  CHECK(as_if_alone(a));
}

TEST_CASE("pages nobody uses are given up for those in need: the oldest prompt first, its end before its beginning",
          "[budget]") {
  const KvRig rig(with_pages(8));
  const auto old_prompt = make_tokens(1, 97, 96), new_prompt = make_tokens(2, 97, 96);
  rig.given(old_prompt);
  rig.given(new_prompt);
  check_figures(rig, {.cached = 6, .misses = 2});
  {
    const Session session = rig.given(make_tokens(3, 97, 96));  // four pages: two are free
    CHECK(as_if_alone(session));
    check_figures(rig, {.used = 4, .cached = 4, .misses = 3, .evictions = 2});
    const Session second = rig.given(new_prompt);
    CHECK(second.reused() == 96);
    CHECK(as_if_alone(second));
    check_figures(rig, {.used = 8, .hits = 1, .misses = 3, .saved = 96, .evictions = 3});
  }
  const Session third = rig.given(old_prompt);  // gone, its beginning last
  CHECK(third.reused() == 0);
  CHECK(as_if_alone(third));
}

TEST_CASE("what was used last stays longest", "[budget]") {
  const KvRig rig(with_pages(8));
  const auto a = make_tokens(1, 97, 96), b = make_tokens(2, 97, 96);
  rig.given(a);
  rig.given(b);
  rig.given(a);  // once more: b is the older one now
  {
    const Session session = rig.given(make_tokens(3, 97, 96));
    CHECK(rig.figures().evictions == 2);
  }
  // Of b its beginning is left; asking for it takes nothing from a.
  CHECK(rig.given(std::span(b).first(40)).reused() == 32);
  CHECK(rig.given(a).reused() == 96);
}

TEST_CASE("one budget holds for pages of all types and sizes", "[budget]") {
  const KvRig rig(with_pages(8));
  rig.given(rig.prompt(200));  // seven F32 pages, six of them cached
  {
    const Session session = rig.given(rig.prompt(200), {.dtype = DType::int8, .page_tokens = 64});
    CHECK(as_if_alone(session));
    const Session half = rig.given(rig.prompt(200), {.dtype = DType::f16, .page_tokens = 16});
    CHECK(as_if_alone(half));
    CHECK(rig.figures().held_bytes <= 8 * page_bytes());
    CHECK(rig.figures().evictions > 0);
    Session f32 = rig.session();
    const auto full = f32.append(rig.prompt(200));
    REQUIRE(!full);
    CHECK(full.error().code() == ErrorCode::cache_full);
    CHECK(f32.position() == 0);
  }
  const Session again = rig.given(rig.prompt(200));
  CHECK(as_if_alone(again));
  CHECK(rig.figures().held_bytes <= 8 * page_bytes());
}

TEST_CASE("figures count what happened", "[budget]") {
  const KvRig rig(with_pages(64));
  check_figures(rig, {});
  Session a = rig.given(rig.prompt(31));  // too short to be found
  check_figures(rig, {.used = 1});
  Session b = rig.given(rig.prompt(100));
  check_figures(rig, {.used = 5, .misses = 1});
  Session c = rig.given(rig.prompt(97));
  check_figures(rig, {.used = 6, .hits = 1, .misses = 1, .saved = 96});
  Session d = must(c.fork());
  check_figures(rig, {.used = 6, .hits = 1, .misses = 1, .saved = 96});
  must(d.append(rig.part(0, 1)));
  check_figures(rig, {.used = 7, .hits = 1, .misses = 1, .saved = 96, .copies = 1});
  must(c.truncate(50));  // into a page that others can find: the next write copies it
  must(c.append(rig.part(0, 1)));
  check_figures(rig, {.used = 7, .hits = 1, .misses = 1, .saved = 96, .copies = 2});
  must(b.clear());
  must(d.clear());
  check_figures(rig, {.used = 3, .cached = 2, .hits = 1, .misses = 1, .saved = 96, .copies = 2});
  must(b.append(rig.prompt(65)));
  check_figures(rig, {.used = 5, .cached = 1, .hits = 2, .misses = 1, .saved = 160, .copies = 2});
  rig.engine.trim();
  check_figures(rig, {.used = 5, .hits = 2, .misses = 1, .saved = 160, .copies = 2});
  must(a.clear());
  must(b.clear());
  must(c.clear());
  check_figures(rig, {.cached = 2, .hits = 2, .misses = 1, .saved = 160, .copies = 2});
}

TEST_CASE("trim gives back what no session uses, and prompts are computed again", "[budget]") {
  const KvRig rig;
  Session kept = rig.given(rig.prompt(100));
  { const Session other = rig.given(make_tokens(7, 100, 96)); }
  CHECK(rig.figures().cached_bytes == 3 * page_bytes());
  const Snapshot before(kept);
  rig.engine.trim();
  CHECK(rig.figures().cached_bytes == 0);
  CHECK(Snapshot(kept) == before);
  const Session again = rig.given(make_tokens(7, 100, 96));
  CHECK(again.reused() == 0);
  CHECK(as_if_alone(again));
  CHECK(rig.given(rig.prompt(100)).reused() == 96);  // of the one that is still there
  must(kept.clear());
  rig.engine.trim();
  CHECK(rig.figures().held_bytes > 0);  // `again` is
  {
    const KvRig fresh;
    { const Session session = fresh.given(rig.prompt(100)); }
    CHECK(fresh.figures().held_bytes > 0);
    fresh.engine.trim();
    CHECK(fresh.figures().held_bytes == 0);
  }
}

TEST_CASE("without a budget, what is kept for reuse is within the plan", "[budget]") {
  const Engine engine = load_golden("llama-long");
  const std::uint64_t kept = engine.plan().kv;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Session session = must(engine.session());
    must(session.append(make_tokens(seed, 500, 96), {.logits = LogitsOf::none}));
  }
  CHECK(engine.kv_figures().held_bytes <= kept);
  CHECK(engine.kv_figures().cached_bytes > kept / 2);
  CHECK(engine.kv_figures().evictions > 0);
}

TEST_CASE("an edit copies no page for the index that is more than the plan has", "[budget]") {
  const Engine engine = load_golden("llama-long", {.context = 512});
  const std::uint64_t planned = engine.plan().kv;
  const auto tokens = make_tokens(1, 500, 96);
  SECTION("a removal") {
    Session session = must(engine.session());
    must(session.append(tokens));
    must(session.remove(4, 100));
    CHECK(must(session.verify()).verdict == Verdict::same);
  }
  SECTION("the cut of a stream") {
    Session session = must(engine.session({.context = 500, .stream = {.sinks = 4, .window = 300}}));
    must(session.append(tokens));
    CHECK(session.edited());
  }
  CHECK(engine.kv_figures().held_bytes <= planned);
  CHECK(engine.kv_figures().copies == 0);
}

TEST_CASE("where there is room for both, an edit leaves the index its pages", "[budget]") {
  const Engine engine = load_golden("llama-long");
  const auto tokens = make_tokens(1, 128, 96);
  Session session = must(engine.session());
  must(session.append(tokens));
  must(session.remove(4, 100));
  CHECK(engine.kv_figures().copies > 0);
  Session other = must(engine.session());
  must(other.append(tokens));
  CHECK(other.reused() > 0);
}

TEST_CASE("a page that only the index shares is taken from it when there is no other", "[budget]") {
  const KvRig rig(with_pages(4));
  Session session = rig.given(rig.prompt(128));  // all of them full, and to be found
  check_figures(rig, {.used = 4, .misses = 1});
  must(session.truncate(40));
  const Session other = rig.given(rig.part(200, 60));  // two pages, for the two that were cached
  must(session.append(rig.part(300, 20)));                  // no page for a copy
  check_figures(rig, {.used = 4, .misses = 2, .evictions = 2});
  CHECK(as_if_alone(session));
  CHECK(as_if_alone(other));
  // A page that another session uses cannot be taken.
  Session fork = must(session.fork());
  const Snapshot before(session);
  const auto full = fork.append(rig.part(0, 1));
  REQUIRE(!full);
  CHECK(full.error().code() == ErrorCode::cache_full);
  CHECK(Snapshot(fork) == before);
  CHECK(Snapshot(session) == before);
}

TEST_CASE("an append that ends half way leaves the session as it was, although a beginning was found", "[budget]") {
  Stingy memory;
  EngineOptions options = with_pages(64, 8);
  options.memory = &memory;
  const KvRig rig(options);
  const Session known = rig.given(rig.prompt(200));
  const auto fill = make_tokens(9, 20, 96);
  for (const std::size_t had : {std::size_t{0}, std::size_t{64}, std::size_t{70}}) {
    Session session = rig.session();
    if (had > 0) must(session.append(rig.prompt(had)));
    const Snapshot before(session);
    const std::size_t reused = session.reused();
    const std::uint64_t used = rig.figures().used_bytes;
    const auto unchanged = [&](ErrorCode code, const auto& failed) {
      INFO(had << " tokens before, " << to_string(code));
      REQUIRE(!failed);
      CHECK(failed.error().code() == code);
      CHECK(Snapshot(session) == before);
      CHECK(session.reused() == reused);
      CHECK(rig.figures().used_bytes == used);
    };
    std::vector<Token> rest(rig.tokens.begin() + static_cast<std::ptrdiff_t>(had), rig.tokens.begin() + 200);
    const auto tail = make_tokens(20 + had, 60, 96);
    rest.insert(rest.end(), tail.begin(), tail.end());
    // By the callback, which is told of tokens that were taken over as done.
    std::size_t first_done = 0, calls = 0;
    const auto progress = [&](std::size_t done, std::size_t) {
      if (++calls == 1) first_done = done;
      return calls < 3;
    };
    unchanged(ErrorCode::cancelled, session.append(rest, {.progress = progress}));
    CHECK(calls == 3);
    CHECK(first_done == (had == 70 ? 8 : 192 - had + 8));
    // By a stop.
    std::stop_source stop;
    const auto stops = [&](std::size_t, std::size_t) { return stop.request_stop(); };
    unchanged(ErrorCode::cancelled, session.append(rest, {.stop = stop.get_token(), .progress = stops}));
    unchanged(ErrorCode::callback_failed,
              session.append(rest, {.progress = [](std::size_t, std::size_t) -> bool { throw 1; }}));
    // By a token that is not one: before anything is taken over.
    auto wrong = rest;
    wrong.back() = 96;
    unchanged(ErrorCode::invalid_argument, session.append(wrong));
    // And then it goes on.
    must(session.append(rest));
    CHECK(session.reused() == (had == 0 ? 192 : had == 64 ? 160 : 64));
    CHECK(as_if_alone(session));
    must(session.append(fill));
    CHECK(as_if_alone(session));
  }
}

TEST_CASE("when memory gives nothing more, cached pages are given up; then an append fails and changes nothing",
          "[budget]") {
  Stingy memory;
  EngineOptions options;
  options.memory = &memory;
  options.kv_budget = std::uint64_t{1} << 30;
  const KvRig rig(options);
  const Session known = rig.given(rig.prompt(300));  // ten pages of a slab of 32
  { const Session gone = rig.given(make_tokens(3, 330, 96)); }
  CHECK(rig.figures().cached_bytes == 10 * page_bytes());
  Session session = rig.session(), second = rig.session();
  memory.refuses = true;
  must(session.append(make_tokens(4, 600, 96), {.logits = LogitsOf::none}));  // nineteen pages: twelve are free
  CHECK(rig.figures().evictions > 0);
  CHECK(rig.figures().cached_bytes == 3 * page_bytes());

  const Snapshot before(second), before_first(session);
  std::vector<Token> tokens(rig.prompt(300).begin(), rig.prompt(300).end());
  const auto more = make_tokens(5, 200, 96);
  tokens.insert(tokens.end(), more.begin(), more.end());
  const auto failed = second.append(tokens);  // nine pages are taken over, seven are lacking
  REQUIRE(!failed);
  CHECK(failed.error().code() == ErrorCode::out_of_memory);
  CHECK(Snapshot(second) == before);
  CHECK(Snapshot(session) == before_first);
  CHECK(second.reused() == 0);
  memory.refuses = false;
  must(second.append(tokens));
  CHECK(second.reused() == 288);
  CHECK(as_if_alone(second));
}

TEST_CASE("a score that cannot be given leaves the session as it was", "[budget]") {
  const KvRig rig(with_pages(64, 8));
  const std::vector<float> nan(rig.engine.spec().d_model, std::numeric_limits<float>::quiet_NaN());
  for (const bool edited : {false, true}) {
    Session session = rig.given(rig.prompt(40));
    Batch batch;
    must(batch.add(session, {.token = 0, .embedding = nan, .want = Want::nothing}));
    must(rig.engine.forward(batch));
    if (edited) must(session.remove(3, 5));
    const Snapshot before(session);
    must(session.append(rig.part(0, 1)));
    must(session.truncate(session.tokens().size() - 1));
    const auto scores = must(session.clone()).score(rig.part(0, 30));
    REQUIRE(!scores);
    CHECK(scores.error().code() == ErrorCode::invalid_state);  // there are no logits
    must(session.append(rig.part(0, 1)));
    const Snapshot with_logits(session);
    const auto failed = session.score(rig.part(0, 30));
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::numeric);
    CHECK(Snapshot(session) == with_logits);
    must(session.truncate(session.tokens().size() - 1));
    CHECK(Snapshot(session) == before);
  }
}

}  // namespace test_kv_budget
