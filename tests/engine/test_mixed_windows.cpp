// A model whose layers have different windows: each group of layers holds the pages that its own window needs, and
// nobody sees it in the logits.
#include "engine/kv_file.hpp"
#include "engine/kv_twins.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_mixed_windows {

using namespace tessera;
using namespace tessera::test;

namespace {

// Layers 0 and 2 see 40 tokens, layer 1 sees all, layer 3 sees 100. A token of a layer takes 2 heads x (16 + 16) x 2
// bytes of F16 = 128, a page of 16 tokens 2,048.
const MadeShape kShape{.d_model = 64, .layers = 4, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 97, .windows = {40, 0, 40, 100}};
constexpr std::uint64_t kLayerPage = 2048;
constexpr KvOptions kPaged{.dtype = DType::f16, .kind = KvKind::paged, .page_tokens = 16};

const MadeModel& model() {
  static const MadeModel made = make_model(kShape, DType::f32);
  return made;
}
Engine load(EngineOptions options = {}) {
  options.kv = kPaged;
  return model().load(std::move(options));
}
std::vector<Token> tokens(std::size_t n) { return made_tokens(n, kShape.vocab, 3); }

// Pages of a group after `n` tokens: all, less what the window has passed by more than one.
std::uint64_t pages(std::uint64_t n, std::uint64_t window) {
  const std::uint64_t passed = window != 0 && n >= window ? (n - window + 1) / 16 : 0;
  return (n + 15) / 16 - (passed > 1 ? passed - 1 : 0);
}

}  // namespace

TEST_CASE("a model of several windows holds the pages that the arithmetic says, with the logits of one that holds all",
          "[windows][groups]") {
  const auto text = tokens(400);
  for (const FreedPages freed : {FreedPages::leave, FreedPages::fill_nan}) {
    const Engine engine = load({.threads = 1, .freed_pages = freed});
    Twins twins(engine, DType::f16);  // all logits of one pass in a cache that gives nothing back before its end
    twins.logits(text);
    for (const std::size_t chunk : {1u, 7u, 150u}) {
      INFO("in chunks of " << chunk);
      Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
      // As a stream it keeps everything; its context is never full.
      Session keeps = must(engine.session({.kv = {.prefix = PrefixReuse::off}, .stream = {.sinks = 4, .window = 500}}));
      for (std::size_t i = 0; i < text.size(); i += chunk) {
        const auto part = std::span(text).subspan(i, std::min(chunk, text.size() - i));
        must(session.append(part));
        must(keeps.append(part));
        const std::uint64_t n = session.position();
        REQUIRE(same_bits(session.logits(), twins.logits(std::span(text).first(n))));
        REQUIRE(same_bits(session.logits(), keeps.logits()));
        CHECK(session.kv().bytes() == (2 * pages(n, 40) + pages(n, 0) + pages(n, 100)) * kLayerPage);
        CHECK(keeps.kv().bytes() == 4 * pages(n, 0) * kLayerPage);
      }
      // 400 tokens are 25 pages. A window of 40 sees 361 and later, from page 22 on: 21 to 24 are held. One of 100 sees 301
      // and later, from page 18 on: 17 to 24.
      CHECK(session.kv().bytes() == (2 * 4 + 25 + 8) * kLayerPage);
      CHECK(session.kv().bytes() == 83'968);
      CHECK(keeps.kv().bytes() == 204'800);
      CHECK(engine.kv_figures().used_bytes == 83'968 + 204'800);
      REQUIRE(session.kv().layout().groups.size() == 3);
      CHECK(session.kv().first_of_layer(0) == 21 * 16);
      CHECK(session.kv().first_of_layer(1) == 0);
      CHECK(session.kv().first_of_layer(2) == 21 * 16);
      CHECK(session.kv().first_of_layer(3) == 17 * 16);
      CHECK(session.kv().first() == 21 * 16);
    }
  }
  // The windows are seen in the logits: another model's are others.
  const Engine full = load({.sliding_window = 0});
  Session session = must(full.session());
  must(session.append(text));
  CHECK(!same_bits(session.logits(), lone_logits(load(), DType::f16, text)));
}

TEST_CASE("what can be done with a session can be done with one of several windows", "[windows][groups]") {
  const auto text = tokens(330);
  EngineOptions options = with_file("mixed-windows", 8 << 20);
  options.freed_pages = FreedPages::fill_nan;
  const Engine engine = load(options);
  Twins twins(engine, DType::f16);
  twins.logits(text);
  const auto expected = [&](const Session& session) { return same_bits(session.logits(), twins.logits(session.tokens())); };
  const auto go_on = [&](Session& session) {
    must(session.append(std::span(text).subspan(session.tokens().size(), 30)));
    return expected(session);
  };
  Session session = must(engine.session());
  must(session.append(std::span(text).first(300)));
  const std::uint64_t bytes = session.kv().bytes();

  SECTION("prompts are found, without what the windows have passed") {
    Session other = must(engine.session());
    must(other.append(std::span(text).first(300)));
    CHECK(other.reused() == 288);
    CHECK(expected(other));
    CHECK(other.kv().bytes() == bytes);
    CHECK(engine.kv_figures().used_bytes < 2 * bytes);
    CHECK(go_on(other));
    engine.trim();  // the windows' passed pages are gone, and nobody needs them
    Session late = must(engine.session());
    must(late.append(std::span(text).first(310)));
    CHECK(late.reused() == 304);
    CHECK(expected(late));
  }
  SECTION("forked, cloned, converted, suspended") {
    const auto sums = checksums(session);
    std::vector<Session> copies;
    copies.push_back(must(session.fork()));
    copies.push_back(must(session.clone()));
    copies.push_back(must(session.convert({.page_tokens = 64})));
    copies.push_back(must(session.convert({.kind = KvKind::contiguous, .page_tokens = 32})));
    must(session.suspend());
    for (Session& copy : copies) {
      CHECK(checksums(copy) == sums);
      CHECK(go_on(copy));
      CHECK(must(copy.verify()).verdict == Verdict::same);
    }
    CHECK(go_on(session));
    CHECK(must(session.verify()).verdict == Verdict::same);
  }
  SECTION("cut: as far as every window can, else all of it is computed again") {
    const auto first = static_cast<std::size_t>(session.kv().first());
    for (const std::size_t to : {first + 39, first + 38}) {
      Session copy = must(session.fork());
      must(copy.truncate(to));
      CHECK(copy.position() == (to == first + 39 ? to : 0));
      must(copy.append(std::span(text).subspan(to, 10)));
      CHECK(expected(copy));
    }
  }
  SECTION("refused an edit once a window has passed, edited before") {
    const Status refused = session.remove(10, 20);
    REQUIRE(!refused);
    CHECK(refused.error().code() == ErrorCode::invalid_state);
    Session early = must(engine.session());
    must(early.append(std::span(text).first(50)));
    must(early.remove(10, 20));
    must(early.append(std::span(text).subspan(50, 100)));
    CHECK(early.kv().bytes() == 4 * 9 * kLayerPage);  // an edited one gives nothing back
    CHECK(must(early.verify()).verdict == Verdict::same);
  }
  SECTION("saved and restored, each layer from its own first token on") {
    const Bytes saved_bytes = saved(session);
    for (const Place& place : kPlaces) {
      Session restored = must(engine.restore(saved_bytes, place_options(place)));
      check_same(restored, session);
      for (std::size_t layer = 0; layer < 4; ++layer) {
        CHECK(restored.kv().first_of_layer(layer) == session.kv().first_of_layer(layer));
      }
      CHECK(saved(restored) == saved_bytes);
      CHECK(go_on(restored));
    }
    // Layers of one window hold the same tokens.
    Bytes changed = saved_bytes;
    put_number(changed, section(changed, "STAT").payload + 64 + 2 * 24 + 16, session.kv().first_of_layer(2) - 16);
    reseal(changed);
    const auto refused = engine.restore(changed);
    REQUIRE(!refused);
    CHECK(refused.error().code() == ErrorCode::corrupt_file);
  }
}

TEST_CASE("a plan counts every group, and a budget has room for a page of each", "[plan][groups]") {
  const Engine engine = load();
  CHECK(engine.plan().kv >= 1024 / 16 * 4 * kLayerPage);
  CHECK(engine.plan().kv < 1024 / 16 * 4 * kLayerPage + 3 * kKvSlabBytes);
  CHECK(engine.plan().kv_per_token == 4 * 128);
  for (const std::uint64_t budget : {std::uint64_t{1}, 4 * kLayerPage - 1}) {
    const auto refused = Engine::load(model().file(), {.kv = kPaged, .kv_budget = budget});
    REQUIRE(!refused);
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK(refused.error().message().find("a KV budget of " + std::to_string(budget) + " bytes") != std::string::npos);
    CHECK(refused.error().message().find("16 tokens of one take 8192") != std::string::npos);
    CHECK(!Engine::plan(model().file(), {.kv = kPaged, .kv_budget = budget}));
  }
  const Engine least = load({.kv_budget = 4 * kLayerPage});
  Session session = must(least.session());
  must(session.append(tokens(16)));
  CHECK(session.append(tokens(1)).error().code() == ErrorCode::cache_full);
}

TEST_CASE("a file's windows are one for each layer, and none is negative", "[windows]") {
  const auto refused = [](std::vector<std::int32_t> windows) {
    MadeShape shape = kShape;
    shape.windows = std::move(windows);
    const auto made = Engine::load(make_model(shape, DType::f32).file(), {});
    return !made && made.error().code() == ErrorCode::corrupt_file &&
           made.error().place().find("llama.attention.sliding_window") != std::string::npos;
  };
  CHECK(refused({40, 0, 40}));
  CHECK(refused({40, 0, 40, 100, 100}));
  CHECK(refused({40, 0, -1, 100}));
  MadeShape wide = kShape;
  wide.windows = {1024, 2000, 0, 1 << 30};  // of the context and more: nothing is masked
  const Engine engine = make_model(wide, DType::f32).load();
  CHECK(must(engine.session()).kv().layout().groups.size() == 1);
}

}  // namespace test_mixed_windows
