// A model's own sliding window: keys that no token will see again are given back, and it shows in memory alone.
#include "engine/kv_twins.hpp"

namespace test_windows {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kWindow = 40;

Engine windowed(EngineOptions options = {}) {
  options.sliding_window = kWindow;
  return load_golden("mistral-long", std::move(options));
}

// Positions that a cache of `n` tokens must hold, before the page's border.
std::size_t first_visible(std::size_t n) { return n < kWindow ? 0 : n - kWindow + 1; }

const KvOptions kKinds[] = {
    {.dtype = DType::f32, .kind = KvKind::contiguous, .page_tokens = 16},
    {.dtype = DType::f16, .kind = KvKind::contiguous, .page_tokens = 64},
    {.dtype = DType::f32, .kind = KvKind::paged, .page_tokens = 16},
    {.dtype = DType::int8, .kind = KvKind::paged, .page_tokens = 32},
    {.dtype = DType::bf16, .kind = KvKind::paged, .page_tokens = 64},
};

std::string name_of(const KvOptions& kv) {
  return std::string(to_string(kv.dtype)) + (kv.kind == KvKind::paged ? ", paged, " : ", contiguous, ") +
         std::to_string(kv.page_tokens);
}

}  // namespace

TEST_CASE("what has left the window is given back, one page later than it could be", "[windows]") {
  const auto tokens = read_tokens(golden_dir() / "mistral-long.tokens.txt");
  REQUIRE(tokens.size() == 600);
  for (const FreedPages freed : {FreedPages::leave, FreedPages::fill_nan}) {
    for (const KvOptions& kv : kKinds) {
      for (const std::size_t chunk : {1u, 7u, 100u}) {
        INFO(name_of(kv) << ", in chunks of " << chunk);
        const Engine engine = windowed({.threads = 1, .freed_pages = freed});
        Twins twins(engine, kv.dtype);
        twins.logits(tokens);
        Session session = must(engine.session({.kv = kv}));
        const std::uint64_t page = session.kv().layout().page_bytes();
        const std::uint64_t unit = kv.kind == KvKind::paged ? 1 : system_memory().granularity();
        for (std::size_t i = 0; i < tokens.size(); i += chunk) {
          const std::size_t n = std::min(chunk, tokens.size() - i);
          must(session.append(std::span(tokens).subspan(i, n)));
          REQUIRE(same_bits(session.logits(), twins.logits(std::span(tokens).first(i + n))));
          const std::size_t pages = first_visible(i + n) / kv.page_tokens;
          CHECK(session.kv().first() == (pages < 2 ? 0 : (pages - 1) * kv.page_tokens));
          const std::uint64_t held = session.kv().layout().pages(i + n) - session.kv().first() / kv.page_tokens;
          if (kv.kind == KvKind::paged) CHECK(session.kv().bytes() == held * page);
          else CHECK(session.kv().bytes() <= held * page + 2 * unit);
        }
        if (kv.kind == KvKind::paged) CHECK(engine.kv_figures().used_bytes == session.kv().bytes());
      }
    }
  }
}

TEST_CASE("a short roll-back behind a window computes nothing again, a long one everything, with the same bits",
          "[windows]") {
  const auto tokens = make_tokens(4, 300, 96);
  for (const KvOptions& kv : kKinds) {
    INFO(name_of(kv));
    const Engine engine = windowed({.freed_pages = FreedPages::fill_nan});
    Twins twins(engine, kv.dtype);
    twins.logits(tokens);
    Session session = must(engine.session({.kv = kv}));
    const auto go_on = [&](std::size_t n) {
      must(session.append(std::span(tokens).subspan(session.tokens().size(), n)));
      CHECK(same_bits(session.logits(), twins.logits(session.tokens())));
    };
    go_on(200);
    const std::size_t first = session.kv().first();
    REQUIRE(first > 0);
    const std::size_t shortest = first + kWindow - 1;  // whose next token sees no key before `first`
    for (const std::size_t to : {std::size_t{199}, std::size_t{190}, shortest}) {
      must(session.truncate(to));
      CHECK(session.position() == to);
      CHECK(session.tokens().size() == to);
      CHECK(!session.has_pending());
      CHECK(session.logits().empty());
      go_on(200 - to);
    }
    REQUIRE(session.kv().first() == first);
    for (const std::size_t to : {shortest - 1, std::size_t{60}, std::size_t{1}}) {
      must(session.truncate(to));
      CHECK(session.position() == 0);
      CHECK(session.kv().bytes() == 0);
      CHECK(std::ranges::equal(session.tokens(), std::span(tokens).first(to)));
      CHECK(session.has_pending());
      CHECK(!session.edited());
      Session copy = must(session.clone());
      go_on(10);
      CHECK(session.position() == to + 10);
      must(copy.append({}));  // the pending ones alone
      CHECK(same_bits(copy.logits(), twins.logits(std::span(tokens).first(to))));
      go_on(200 - session.tokens().size());
    }
    must(session.truncate(70));
    must(session.truncate(50));  // of pending tokens
    CHECK(session.tokens().size() == 50);
    go_on(1);
    must(session.clear());
    CHECK(session.tokens().empty());
    CHECK(!session.has_pending());
    go_on(100);
  }
}

TEST_CASE("a sequence with an embedding that a window has passed is dropped as a whole", "[windows]") {
  const Engine engine = windowed();
  const auto tokens = make_tokens(4, 200, 96);
  const std::vector<float> embedding(engine.spec().d_model, 0.5f);
  Session session = must(engine.session());
  Batch batch;
  must(batch.add(session, {.token = 0, .embedding = embedding, .want = Want::nothing}));
  must(engine.forward(batch));
  must(session.append(tokens));
  must(session.truncate(195));
  CHECK(session.position() == 195);
  must(session.truncate(100));
  CHECK(session.position() == 0);
  CHECK(session.tokens().empty());
  must(session.append(tokens));
  CHECK(same_bits(session.logits(), lone_logits(engine, DType::f32, tokens)));
}

TEST_CASE("what has given pages back cannot be edited, and says so", "[windows]") {
  const auto tokens = make_tokens(4, 200, 96);
  for (const KvOptions& kv : kKinds) {
    INFO(name_of(kv));
    const Engine engine = windowed();
    Session session = must(engine.session({.kv = kv}));
    must(session.append(std::span(tokens).first(kWindow + 20)));
    REQUIRE(session.kv().first() == 0);
    Session early = must(session.clone());
    must(session.append(std::span(tokens).subspan(kWindow + 20)));
    REQUIRE(session.kv().first() > 0);
    const Snapshot before(session);
    for (const Status& refused : {session.remove(150, 160), session.remove(0, 10), session.keep_window(4, 20)}) {
      REQUIRE(!refused);
      CHECK(refused.error().code() == ErrorCode::invalid_state);
      CHECK(refused.error().message().find(std::to_string(kWindow)) != std::string::npos);
      CHECK(Snapshot(session) == before);
    }
    must(session.remove(195, 200));  // the end can go
    CHECK(session.position() == 195);
    // One that was edited before gives nothing back from then on, and can be edited again.
    must(early.remove(5, 10));
    must(early.append(std::span(tokens).subspan(kWindow + 20)));
    CHECK(early.kv().first() == 0);
    must(early.remove(100, 110));
    must(early.append(std::span(tokens).first(5)));
    const std::vector<Edit> edits = {
        {.appended = {tokens.begin(), tokens.begin() + kWindow + 20}, .first = 5, .last = 10},
        {.appended = {tokens.begin() + kWindow + 20, tokens.end()}, .first = 100, .last = 110}};
    Session twin = replay(engine, kv.dtype, edits, std::span(tokens).first(5));
    CHECK(same_bits(early.logits(), twin.logits()));
    CHECK(checksums(early) == checksums(twin));
  }
}

TEST_CASE("copies of a session behind its window go on with the same bits", "[windows]") {
  const auto tokens = make_tokens(4, 260, 96);
  for (const KvOptions& kv : kKinds) {
    const Engine engine = windowed({.freed_pages = FreedPages::fill_nan});
    Twins twins(engine, kv.dtype);
    twins.logits(tokens);
    Session session = must(engine.session({.kv = kv}));
    must(session.append(std::span(tokens).first(200)));
    std::vector<Session> copies;
    copies.push_back(must(session.clone()));
    if (kv.kind == KvKind::paged) copies.push_back(must(session.fork()));
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
        copies.push_back(must(session.convert({.kind = kind, .page_tokens = page_tokens})));
      }
    }
    for (Session& copy : copies) {
      INFO(name_of(kv) << " to " << (copy.kv().kind() == KvKind::paged ? "paged " : "contiguous ")
                       << copy.kv().layout().page_tokens);
      CHECK(copy.kv().first() == session.kv().first());
      CHECK(copy.position() == 200);
      must(copy.append(std::span(tokens).subspan(200, 30)));
      CHECK(same_bits(copy.logits(), twins.logits(std::span(tokens).first(230))));
      must(copy.truncate(215));
      must(copy.append(std::span(tokens).subspan(215)));
      CHECK(same_bits(copy.logits(), twins.logits(tokens)));
      must(copy.truncate(30));
      CHECK(copy.position() == 0);
      must(copy.append(std::span(tokens).subspan(30, 10)));
      CHECK(same_bits(copy.logits(), twins.logits(std::span(tokens).first(40))));
    }
  }
}

TEST_CASE("windowed sessions share prompts, and what one gives back the other keeps", "[windows]") {
  const auto tokens = make_tokens(4, 300, 96);
  const Engine engine = windowed({.kv_budget = std::uint64_t{64} << 20, .freed_pages = FreedPages::fill_nan});
  Session first = must(engine.session());
  must(first.append(std::span(tokens).first(100)));
  Session second = must(engine.session());
  must(second.append(std::span(tokens).first(100)));
  CHECK(second.reused() == 96);
  must(first.append(std::span(tokens).subspan(100)));
  REQUIRE(first.kv().first() > second.kv().first());
  must(second.append(std::span(tokens).subspan(100, 50)));
  CHECK(same_bits(second.logits(), lone_logits(engine, DType::f32, std::span(tokens).first(150))));
  CHECK(same_bits(first.logits(), lone_logits(engine, DType::f32, tokens)));
  // All of it can be found, although the first has given its beginning back.
  Session third = must(engine.session());
  must(third.append(tokens));
  CHECK(third.reused() == 288);
  CHECK(third.kv().first() == first.kv().first());
  CHECK(same_bits(third.logits(), first.logits()));
  // Another window is another model.
  const Engine full = load_golden("mistral-long", {.sliding_window = 0});
  Session wide = must(full.session());
  must(wide.append(tokens));
  CHECK(wide.kv().first() == 0);
  CHECK(!same_bits(wide.logits(), first.logits()));
}

TEST_CASE("what follows a page behind the window is not taken for a beginning", "[window]") {
  EngineOptions options;
  options.sliding_window = 1;
  const Engine engine = load_golden("mistral-long", options);
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(1, 33, vocab);
  { must(must(engine.session()).append(prompt)); }
  Session session = must(engine.session());
  must(session.append(make_tokens(2, 160, vocab)));
  REQUIRE(session.kv().first() > 0);
  must(session.truncate(session.kv().first()));
  must(session.append(prompt));
  CHECK(must(session.verify()).verdict == Verdict::same);
}

}  // namespace test_windows
