// Saved and restored, a session goes on with the same bits: in every type, layout and page size, in another engine and in
// another process.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "engine/snapshot_bytes.hpp"

namespace test_snapshot {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

extern "C" char** environ;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tessera-snapshot-" + std::to_string(::getpid()))) { fs::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::vector<Token> tokens_of(const std::string& model) { return read_tokens(golden_dir() / (model + ".tokens.txt")); }

// What follows: logits after each of some more tokens.
std::vector<float> go_on(Session& session, std::size_t n = 5) {
  std::vector<Token> more(n);
  for (std::size_t i = 0; i < n; ++i) more[i] = static_cast<Token>(7 * i + 3);
  return all_logits(session, more, 2);
}

Sampler drawing() { return sampling::chain().penalties({.repetition = 1.2f}).temperature(1.0f).top_p(0.95f).seed(11).build(); }

std::vector<Token> draw(Session& session, Sampler& sampler, std::size_t n) {
  std::vector<Token> tokens;
  for (const auto& piece :
       session.generate(sampler, {.max_tokens = n, .end_of_generation = EndOfGeneration::ignore})) {
    if (!piece) FAIL(piece.error().text());
    tokens.push_back(piece->token);
  }
  return tokens;
}

// Restores the bytes in every place; each restored session is the same, and goes on as this one does.
void check_everywhere(Session& session, const Engine& engine) {
  const Bytes bytes = saved(session);
  Session copy = must(session.clone());
  const std::vector<float> expected = go_on(copy);
  for (const Place& place : kPlaces) {
    INFO("into " << (place.kind == KvKind::paged ? "pages" : "one stretch") << " of " << place.page_tokens);
    Session restored = must(engine.restore(bytes, place_options(place)));
    CHECK(restored.kv().kind() == place.kind);
    CHECK(restored.kv().layout().page_tokens == place.page_tokens);
    check_same(session, restored);
    if (restored.kv().first() == session.kv().first()) CHECK(saved(restored) == bytes);
    CHECK(same_bits(go_on(restored), expected));
  }
}

}  // namespace

TEST_CASE("every architecture and type goes from every layout into every other", "[snapshot]") {
  for (const std::string& model : representative_models()) {
    const Engine engine = load_golden(model), other = load_golden(model, {.threads = 1});
    const auto tokens = tokens_of(model);
    for (const DType dtype : kFewKvTypes) {
      if (!holds(engine, dtype)) continue;
      DYNAMIC_SECTION(model << ", " << to_string(dtype)) {
        for (const Place& place : kPlaces) {
          Session session = must(engine.session(place_options(place, dtype)));
          must(session.append(tokens));
          check_everywhere(session, other);
        }
      }
    }
  }
}

TEST_CASE("what is saved does not depend on layout or page size", "[snapshot]") {
  const Engine engine = load_golden("llama-long");
  const auto tokens = tokens_of("llama-long");
  for (const DType dtype : kFewKvTypes) {
    Bytes first;
    for (const Place& place : kPlaces) {
      Session session = must(engine.session(place_options(place, dtype)));
      must(session.append(std::span(tokens).first(150)));
      const Bytes bytes = saved(session);
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  }
}

TEST_CASE("a section of a layer has the cache's own checksum", "[snapshot]") {
  const Engine engine = load_golden("qwen3");
  Session session = must(engine.session());
  must(session.append(tokens_of("qwen3")));
  const Bytes bytes = saved(session);
  std::size_t layer = 0;
  for (const SectionAt& at : sections_of(bytes)) {
    if (at.type != "LAYR") continue;
    CHECK(number_at<std::uint64_t>(bytes, at.payload + at.length) == session.kv().checksum(layer++));
  }
  CHECK(layer == engine.spec().n_layers());
}

TEST_CASE("a generation goes on in its middle, with its pending token and its random numbers", "[snapshot]") {
  for (const std::string& model : representative_models()) {
    DYNAMIC_SECTION(model) {
      const Engine engine = load_golden(model), other = load_golden(model);
      const auto prompt = tokens_of(model);
      Session session = must(engine.session());
      must(session.append(std::span(prompt).first(9)));
      Sampler sampler = drawing();
      draw(session, sampler, 4);
      REQUIRE(session.has_pending());
      check_everywhere(session, other);
      Session restored = must(other.restore(saved(session)));
      Sampler same = drawing();
      CHECK(draw(restored, same, 8) == draw(session, sampler, 8));
      check_same(session, restored);
    }
  }
}

TEST_CASE("edited sessions keep their edits and what a replay needs", "[snapshot]") {
  const Engine engine = load_golden("llama-long"), other = load_golden("llama-long");
  const auto tokens = tokens_of("llama-long");
  for (const DType dtype : kFewKvTypes) {
    DYNAMIC_SECTION(to_string(dtype)) {
      Session session = must(engine.session({.kv = {.dtype = dtype}}));
      must(session.append(std::span(tokens).first(90)));
      must(session.remove(4, 11));
      must(session.append(std::span(tokens).subspan(90, 20)));
      must(session.keep_window(3, 50));
      must(session.truncate(session.position() - 2));
      must(session.append(std::span(tokens).subspan(110, 3)));
      REQUIRE(session.edited());
      check_everywhere(session, other);

      Sampler sampler = drawing(), same = drawing();  // random numbers go on after the removed tokens' ones
      Session restored = must(other.restore(saved(session)));
      CHECK(draw(restored, same, 5) == draw(session, sampler, 5));
      must(restored.remove(1, 2));
      must(session.remove(1, 2));
      CHECK(saved(restored) == saved(session));
    }
  }
  SECTION("converted to another type, it cannot be replayed, and says so again") {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(std::span(tokens).first(40)));
    Session converted = must(session.convert({.dtype = DType::int8}));
    check_everywhere(converted, other);
  }
  SECTION("a sampler that fails leaves a history that fits") {
    Session session = must(engine.session());
    must(session.append(std::span(tokens).first(40)));
    must(session.remove(4, 8));
    Sampler good = drawing();
    draw(session, good, 2);
    Sampler bad = sampling::chain()
                      .stage([](sampling::Candidates&, const sampling::Context&) { throw std::runtime_error("no"); })
                      .build();
    const auto failed = session.generate(bad, {.max_tokens = 1}, {});
    REQUIRE(!failed);
    REQUIRE(session.has_pending());
    check_everywhere(session, other);
  }
}

TEST_CASE("whatever a session has been through, it comes back the same", "[snapshot]") {
  std::mt19937 random(20'261'121);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (const std::string model : {"llama-gqa", "mistral", "gpt2"}) {
    const Engine engine = load_golden(model, {.context = 40, .threads = 1});
    const bool moves = model != "gpt2";  // learned positions cannot be removed
    std::size_t edited = 0, pending = 0, windowed = 0;
    for (int run = 0; run < 60; ++run) {
      SessionOptions options = place_options(kPlaces[below(6)], kFewKvTypes[below(4)]);
      if (moves && below(2) == 0) options.stream = {.sinks = 2, .window = 20};
      Session session = must(engine.session(options));
      for (int step = 0; step < 30; ++step) {
        const std::size_t n = session.position();
        switch (below(9)) {
          case 0: (void)session.append(std::vector<Token>(1 + below(12), static_cast<Token>(below(90)))); break;
          case 1: (void)session.append(std::vector<Token>(1 + below(40), 5), {.logits = LogitsOf::none}); break;
          case 2: (void)session.score(std::vector<Token>(1 + below(6), 7)); break;
          case 3: (void)session.remove(below(n + 1), below(n + 1)); break;
          case 4: (void)session.keep_window(below(4), below(n + 1)); break;
          case 5: must(session.truncate(n - std::min(n, below(9)))); break;
          case 6: {
            Sampler bad = sampling::chain()
                              .stage([](sampling::Candidates&, const sampling::Context&) { throw std::runtime_error("no"); })
                              .build();
            (void)session.generate(bad, {.max_tokens = 1}, {});
            break;
          }
          default: {
            Sampler sampler = drawing();
            (void)session.generate(sampler, {.max_tokens = 1 + below(6), .end_of_generation = EndOfGeneration::ignore}, {});
          }
        }
        const Bytes bytes = saved(session);
        SessionOptions same = options;
        same.kv.dtype = DType::automatic;
        if (below(2) == 0) same.kv = place_options(kPlaces[below(6)]).kv;
        Session restored = must(engine.restore(bytes, same));
        check_same(session, restored);
        if (restored.kv().first() == session.kv().first()) REQUIRE(saved(restored) == bytes);
        edited += session.edited() ? 1 : 0;
        pending += session.has_pending() ? 1 : 0;
        windowed += session.kv().first() > 0 ? 1 : 0;
        if (below(3) == 0) session = std::move(restored);
      }
    }
    INFO(model << ": " << edited << " edited, " << pending << " with pending tokens, " << windowed << " behind a window");
    CHECK(pending > 100);
    CHECK((!moves || edited > 100));
    CHECK((model != "mistral" || windowed > 20));
  }
}

TEST_CASE("behind a model's window only what it still sees is saved", "[snapshot]") {
  const Engine engine = load_golden("mistral-long"), other = load_golden("mistral-long", {.threads = 1});
  const auto tokens = tokens_of("mistral-long");
  for (const DType dtype : {DType::f16, DType::int8}) {
    for (const Place& place : kPlaces) {
      Session session = must(engine.session(place_options(place, dtype)));
      must(session.append(tokens));
      REQUIRE(session.kv().first() > 0);
      check_everywhere(session, other);
      // Further back than what is held: all tokens are pending, and nothing else is there.
      must(session.truncate(session.kv().first() + 10));
      REQUIRE(session.position() == 0);
      REQUIRE(session.has_pending());
      check_everywhere(session, other);
    }
  }
  SECTION("restoring takes no memory for what the window has passed") {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(tokens));
    const Bytes bytes = saved(session);
    const auto budget = session.kv().bytes() + session.kv().layout().page_bytes();
    REQUIRE(budget < session.kv().layout().pages(tokens.size()) * session.kv().layout().page_bytes());
    const Engine tight = load_golden("mistral-long", {.kv_budget = budget});
    Session restored = must(tight.restore(bytes));
    check_same(session, restored);
    CHECK(same_bits(go_on(restored), go_on(session)));
    // The same when a session is copied.
    const Engine roomy = load_golden("mistral-long", {.kv_budget = 2 * budget});
    Session first = must(roomy.restore(bytes));
    check_same(first, must(first.clone()));
  }
}

TEST_CASE("a session that does not know its logits, or has no token, comes back so", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = tokens_of("llama-gqa");
  Session session = must(engine.session());
  check_everywhere(session, engine);
  must(session.append(tokens, {.logits = LogitsOf::none}));
  CHECK(must(engine.restore(saved(session))).logits().empty());
  check_everywhere(session, engine);
  must(session.append(std::span(tokens).first(3), {.logits = LogitsOf::all}));  // several rows: the last one counts
  check_everywhere(session, engine);
  must(session.truncate(9));
  check_everywhere(session, engine);
  must(session.clear());
  check_everywhere(session, engine);
  CHECK(saved(session) == saved(must(engine.session())));
}

TEST_CASE("a full session with one more token that is pending", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa", {.context = 20});
  const auto tokens = tokens_of("llama-gqa");
  Session session = must(engine.session());
  must(session.append(std::span(tokens).first(20)));
  Sampler sampler = drawing();
  draw(session, sampler, 1);
  REQUIRE(session.tokens().size() == 21);
  const Session restored = must(engine.restore(saved(session)));
  check_same(session, restored);
}

TEST_CASE("embeddings and a range of layers", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa"), other = load_golden("llama-gqa");
  const std::vector<float> embedding(engine.spec().d_model, 0.25f);
  const auto hidden = [&](const Engine& with, Session& session, const Row& row, std::uint32_t first, std::uint32_t last) {
    Batch batch;
    must(batch.add(session, row));
    const Outputs outputs = must(with.forward(batch, {.first_layer = first, .last_layer = last}));
    return std::vector<float>(outputs.row(0).begin(), outputs.row(0).end());
  };
  const Row token{.token = 5, .embedding = {}, .want = Want::hidden};
  const Row row{.token = 0, .embedding = embedding, .want = Want::hidden};
  struct Range {
    std::uint32_t first, last;
  };
  for (const auto& [first, last] : {Range{0, 1}, Range{1, 2}, Range{0, 2}}) {
    INFO("layers " << first << " to " << last);
    Session session = must(engine.session());
    if (first == 0) (void)hidden(engine, session, token, first, last);
    (void)hidden(engine, session, row, first, last);
    const Bytes bytes = saved(session);
    CHECK(std::ranges::count(sections_of(bytes), "LAYR", &SectionAt::type) == last - first);
    for (const Place& place : kPlaces) {
      Session restored = must(other.restore(bytes, place_options(place)));
      CHECK(std::ranges::equal(restored.tokens(), session.tokens()));
      CHECK(saved(restored) == bytes);
      Session copy = must(session.clone());
      CHECK(same_bits(hidden(other, restored, row, first, last), hidden(engine, copy, row, first, last)));
      Batch batch;
      must(batch.add(restored, row));
      if (last - first == 1) CHECK(other.forward(batch, {.first_layer = 1 - first}).error().code() == ErrorCode::invalid_state);
    }
  }
}

TEST_CASE("an edited session with an embedding, or of some layers, comes back", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa"), other = load_golden("llama-gqa");
  const std::vector<float> embedding(engine.spec().d_model, 0.25f);
  for (const ForwardOptions& range : {ForwardOptions{}, ForwardOptions{.first_layer = 1, .last_layer = 2}}) {
    Session session = must(engine.session());
    for (int i = 0; i < 6; ++i) {
      Batch batch;
      must(batch.add(session, {.token = 0, .embedding = embedding, .want = Want::nothing}));
      must(engine.forward(batch, range));
    }
    must(session.remove(2, 4));
    const Bytes bytes = saved(session);
    Session restored = must(other.restore(bytes));
    CHECK(restored.edited());
    CHECK(saved(restored) == bytes);
    CHECK(std::ranges::equal(restored.tokens(), session.tokens()));
  }
}

TEST_CASE("what a model's window has passed cannot be a stream's, which says so", "[snapshot]") {
  const Engine engine = load_golden("mistral-long");
  Session session = must(engine.session());
  must(session.append(tokens_of("mistral-long")));
  REQUIRE(session.kv().first() > 0);
  const auto stream = engine.restore(saved(session), {.stream = {.sinks = 4, .window = 20}});
  REQUIRE(!stream);
  CHECK(stream.error().code() == ErrorCode::invalid_argument);
  CHECK(stream.error().message().find("stream") != std::string::npos);
}

TEST_CASE("restored pages are found by other sessions, edited ones are not", "[snapshot]") {
  const Engine engine = load_golden("llama-long");
  const auto tokens = tokens_of("llama-long");
  const auto part = std::span(tokens).first(70);
  Session session = must(engine.session());
  must(session.append(part));
  const Bytes bytes = saved(session);
  Session expected = must(session.clone());
  const std::vector<float> logits = go_on(expected);
  must(session.remove(3, 5));
  const Bytes edited = saved(session);

  const auto reused = [&](const Bytes& from, const SessionOptions& options) {
    const Engine other = load_golden("llama-long");
    Session restored = must(other.restore(from, options));
    Session second = must(other.session());
    must(second.append(part));
    CHECK(same_bits(go_on(second), logits));
    Session again = must(other.restore(from, options));  // the same pages once more
    check_same(restored, again);
    return second.reused();
  };
  CHECK(reused(bytes, {}) == 64);
  CHECK(reused(bytes, {.kv = {.prefix = PrefixReuse::off}}) == 0);
  CHECK(reused(bytes, {.kv = {.salt = "someone else"}}) == 0);
  CHECK(reused(bytes, {.kv = {.kind = KvKind::contiguous}}) == 0);
  CHECK(reused(edited, {}) == 0);
}

TEST_CASE("through a file", "[snapshot]") {
  const Folder folder;
  const auto path = folder.path / "s.tkv";
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(tokens_of("llama-gqa")));
  must(session.save(path));
  const Bytes bytes = saved(session);
  REQUIRE(fs::file_size(path) == bytes.size());
  check_same(session, must(engine.restore(path)));
  check_same(session, must(engine.restore(must(open_file(path)))));
  must(session.append(tokens_of("llama-gqa")));
  must(session.save(path));  // over the old one
  check_same(session, must(engine.restore(path)));
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

// Run by the next test in a process of its own.
TEST_CASE("child: goes on from the file as its parent did", "[.child]") {
  const fs::path folder = std::getenv("TESSERA_TEST_FOLDER");
  const Engine engine = load_golden("qwen2");
  Session session = must(engine.restore(folder / "s.tkv"));
  CHECK(same_bits(go_on(session), read_floats(folder / "expected.f32")));
}

TEST_CASE("in another process", "[snapshot]") {
  const Folder folder;
  {
    const Engine engine = load_golden("qwen2");
    Session session = must(engine.session());
    must(session.append(tokens_of("qwen2")));
    Sampler sampler = drawing();
    draw(session, sampler, 3);
    must(session.save(folder.path / "s.tkv"));
    const std::vector<float> expected = go_on(session);
    std::ofstream(folder.path / "expected.f32", std::ios::binary)
        .write(reinterpret_cast<const char*>(expected.data()), static_cast<std::streamsize>(expected.size() * sizeof(float)));
  }
  ::setenv("TESSERA_TEST_FOLDER", folder.path.c_str(), 1);
  const std::string self = fs::read_symlink("/proc/self/exe"), test = "[.child]";
  char* const arguments[] = {const_cast<char*>(self.c_str()), const_cast<char*>(test.c_str()), nullptr};
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ) == 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace test_snapshot
