// SessionOptions::stream: a sequence that does not end with its context, and is the same however it is asked for.
#include <limits>

#include "engine/kv_twins.hpp"

namespace test_streams {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kContext = 32;
constexpr StreamOptions kStream{.sinks = 3, .window = 12};

Session stream_session(const Engine& engine, KvOptions kv = {}, StreamOptions stream = kStream) {
  return must(engine.session({.kv = std::move(kv), .context = kContext, .stream = stream}));
}

// A sampler that notes the positions it draws for.
Sampler noting(std::vector<std::uint64_t>& positions) {
  return sampling::chain()
      .stage([&positions](sampling::Candidates&, const sampling::Context& context) {
        positions.push_back(context.position);
      })
      .temperature(1.3f)
      .seed(11)
      .build();
}
Sampler drawing() { return sampling::chain().temperature(1.3f).seed(11).build(); }

// `n` tokens, in calls of at most `chunk`.
std::vector<Token> generate(Session& session, Sampler& sampler, std::size_t n, std::size_t chunk) {
  std::vector<Token> tokens;
  while (tokens.size() < n) {
    const GenerateOptions options{.max_tokens = std::min(chunk, n - tokens.size()),
                                  .end_of_generation = EndOfGeneration::ignore};
    for (const auto& piece : session.generate(sampler, options)) tokens.push_back(must(Result<Piece>(piece)).token);
  }
  return tokens;
}

const std::vector<Token> kPrompt = {5, 7, 11, 13, 17};

}  // namespace

TEST_CASE("a stream goes on for several contexts, and keeps its sinks", "[streams]") {
  const std::uint64_t granule = system_memory().granularity();
  for (const char* name : {"llama-gqa", "qwen2"}) {
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      for (const DType dtype : {DType::f32, DType::int8}) {
        const Engine engine = load_golden(name);
        Session session = stream_session(engine, {.dtype = dtype, .kind = kind, .page_tokens = 16});
        must(session.append(kPrompt));
        Sampler sampler = drawing();
        std::vector<Token> all = kPrompt;
        std::size_t cuts = 0, before = session.position();
        for (int i = 0; i < 200; ++i) {
          all.push_back(generate(session, sampler, 1, 1)[0]);
          if (session.position() < before) {
            ++cuts;
            CHECK(session.position() == kStream.sinks + kStream.window);
          }
          before = session.position();
          REQUIRE(session.position() < kContext);
          CHECK(session.kv().bytes() < 2 * session.kv().layout().page_bytes() + granule);
          // The sinks, and the last tokens.
          const auto tokens = session.tokens();
          REQUIRE(tokens.size() >= kStream.sinks);
          CHECK(std::ranges::equal(tokens.first(kStream.sinks), std::span(kPrompt).first(kStream.sinks)));
          const std::size_t recent = std::min<std::size_t>(tokens.size(), kStream.window);
          REQUIRE(all.size() >= recent);
          CHECK(std::ranges::equal(tokens.last(recent), std::span(all).last(recent)));
        }
        CHECK(session.edited());
        CHECK(cuts ==
              (kPrompt.size() + 199 - kStream.sinks - kStream.window) / (kContext - kStream.sinks - kStream.window));
      }
    }
  }
}

TEST_CASE("a stream is the same in one call or many, forked, and cut by hand", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  constexpr std::size_t kTokens = 150;
  Session session = stream_session(engine);
  must(session.append(kPrompt));
  Sampler sampler = drawing();
  const std::vector<Token> expected = generate(session, sampler, kTokens, kTokens);
  for (const std::size_t chunk : {1u, 7u, 31u}) {
    Session again = stream_session(engine, {.dtype = DType::f32, .kind = KvKind::contiguous});
    must(again.append(kPrompt));
    CHECK(generate(again, sampler, kTokens, chunk) == expected);
    CHECK(Snapshot(again).checksums == Snapshot(session).checksums);
  }
  // Copies stream on, in every layout.
  Session parent = stream_session(engine);
  must(parent.append(kPrompt));
  std::vector<Token> tokens = generate(parent, sampler, 70, 70);
  std::vector<Session> copies;
  copies.push_back(must(parent.fork()));
  copies.push_back(must(parent.clone()));
  copies.push_back(must(parent.convert({.kind = KvKind::contiguous, .page_tokens = 64})));
  for (Session& copy : copies) {
    std::vector<Token> got = tokens;
    const auto rest = generate(copy, sampler, kTokens - 70, 20);
    got.insert(got.end(), rest.begin(), rest.end());
    CHECK(got == expected);
  }
  // By hand: the same tokens appended to a session that ends with its context, cut whenever it is full.
  Session manual = must(engine.session({.context = kContext}));
  must(manual.append(kPrompt));
  for (std::size_t i = 0; i + 1 < kTokens; ++i) {
    must(manual.append({&expected[i], 1}));
    if (manual.position() == kContext) must(manual.keep_window(kStream.sinks, kStream.window));
  }
  must(session.append({}, {.logits = LogitsOf::none}));
  must(manual.append({&expected.back(), 1}, {.logits = LogitsOf::none}));
  CHECK(std::ranges::equal(manual.tokens(), session.tokens()));
  CHECK(checksums(manual) == checksums(session));
}

TEST_CASE("a sampler's random numbers do not repeat after a cut", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = stream_session(engine);
  must(session.append(kPrompt));
  std::vector<std::uint64_t> positions;
  Sampler sampler = noting(positions);
  const auto tokens = generate(session, sampler, 120, 50);
  REQUIRE(positions.size() == 120);
  for (std::size_t i = 0; i < positions.size(); ++i) CHECK(positions[i] == kPrompt.size() + i);
  // Emptied, it draws as a new one does.
  must(session.clear());
  must(session.append(kPrompt));
  CHECK(generate(session, sampler, 120, 50) == tokens);
  // And edits by hand count as well.
  Session edited = must(engine.session());
  must(edited.append(make_tokens(1, 20, 96)));
  must(edited.remove(3, 9));
  positions.clear();
  generate(edited, sampler, 2, 2);
  CHECK(positions == std::vector<std::uint64_t>{20, 21});
}

TEST_CASE("appends, batches and scores cut a stream that they fill", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = make_tokens(3, 64, engine.spec().vocab_size);
  const auto until_full = std::span(tokens).first(kContext);
  Session reference = must(engine.session({.context = kContext}));
  must(reference.append(until_full));
  const std::vector<float> logits(reference.logits().begin(), reference.logits().end());
  must(reference.keep_window(kStream.sinks, kStream.window));
  const Snapshot expected(reference);

  Session session = stream_session(engine);
  CHECK(same_bits(must(session.append(until_full))[0], logits));
  CHECK(Snapshot(session) == expected);
  must(session.clear());
  must(session.append(until_full.first(10), {.logits = LogitsOf::none}));
  Batch batch;
  must(batch.add(session, until_full.subspan(10)));
  CHECK(same_bits(must(engine.forward(batch)).row(21), logits));
  CHECK(checksums(session) == expected.checksums);
  must(session.clear());
  must(session.score(until_full));
  CHECK(Snapshot(session) == expected);
  // What is longer than the room there is is refused, as without a stream.
  const auto full = session.append(std::span(tokens).first(kContext - session.position() + 1));
  REQUIRE(!full);
  CHECK(full.error().code() == ErrorCode::cache_full);
  CHECK(Snapshot(session) == expected);
  must(session.append(std::span(tokens).first(kContext - session.position())));
  CHECK(session.position() == kStream.sinks + kStream.window);
}

TEST_CASE("streams that cannot be are refused when the session is made", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  const auto refused = [&](StreamOptions stream, std::uint32_t context) {
    const auto session = engine.session({.context = context, .stream = stream});
    return !session && session.error().code() == ErrorCode::invalid_argument;
  };
  CHECK(refused({.sinks = 4, .window = 28}, 32));  // no room for a token
  CHECK(refused({.sinks = 0, .window = 32}, 32));
  CHECK(refused({.sinks = 32, .window = 1}, 32));
  CHECK(refused({.sinks = 4, .window = 60}, 0));
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  CHECK(refused({.sinks = kMost, .window = kMost}, 32));
  CHECK(!refused({.sinks = 4, .window = 27}, 32));
  CHECK(!refused({.sinks = kMost, .window = 0}, 32));  // no stream at all
  for (const auto& [model, why] : {std::pair("gpt2", "learned positions"), std::pair("hunyuan-dense", "behind their rotation")}) {
    const Engine unmoved = load_golden(model);
    const auto session = unmoved.session({.stream = kStream});
    REQUIRE(!session);
    CHECK(session.error().code() == ErrorCode::unsupported);
    CHECK(session.error().message().find(why) != std::string::npos);
    CHECK(unmoved.session({.stream = {.sinks = 4, .window = 0}}));
  }

  // As close as it gets: one token of room.
  Session tight = stream_session(engine, {}, {.sinks = 0, .window = 31});
  must(tight.append(kPrompt));
  Sampler sampler = drawing();
  CHECK(generate(tight, sampler, 60, 60).size() == 60);
  CHECK(tight.position() == 31);
}

TEST_CASE("a stream needs no more pages than its context", "[streams]") {
  const Engine probe = load_golden("llama-gqa");
  const std::uint64_t page = stream_session(probe, {.page_tokens = 16}).kv().layout().page_bytes();
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}, .threads = 1, .kv_budget = 2 * page});
  Session session = stream_session(engine);
  must(session.append(kPrompt));
  Sampler sampler = drawing();
  const auto tokens = generate(session, sampler, 150, 150);
  Session other = stream_session(probe);
  must(other.append(kPrompt));
  CHECK(generate(other, sampler, 150, 150) == tokens);
}

TEST_CASE("a model's own window does not end a stream", "[streams]") {
  for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
    const Engine engine = load_golden("mistral-long", {.sliding_window = 8, .threads = 1});
    const KvOptions kv{.kind = kind, .page_tokens = 16};
    Session session = must(engine.session({.kv = kv, .context = 64, .stream = {.sinks = 4, .window = 20}}));
    must(session.append(kPrompt));
    Sampler sampler = drawing();
    const auto tokens = generate(session, sampler, 200, 60);
    CHECK(session.kv().first() == 0);
    CHECK(session.position() < 64);
    Session again = must(engine.session({.context = 64, .stream = {.sinks = 4, .window = 20}}));
    must(again.append(kPrompt));
    std::vector<Token> got = generate(again, sampler, 30, 30);
    Session copy = must(again.convert(kv));
    const auto rest = generate(copy, sampler, 170, 170);
    got.insert(got.end(), rest.begin(), rest.end());
    CHECK(got == tokens);
  }
}

TEST_CASE("a draw that fails at a cut loses no token", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  Session reference = stream_session(engine);
  must(reference.append(kPrompt));
  Sampler sampler = drawing();
  const auto expected = generate(reference, sampler, 100, 100);

  Session session = stream_session(engine);
  must(session.append(kPrompt));
  int draws = 0;
  Sampler faulty = sampling::chain()
                       .stage([&draws](sampling::Candidates&, const sampling::Context&) {
                         if (++draws % 2 == 0) throw 1;  // every second draw
                       })
                       .temperature(1.3f)
                       .seed(11)
                       .build();
  std::vector<Token> tokens;
  std::size_t failures = 0;
  while (tokens.size() < 100) {
    for (const auto& piece :
         session.generate(faulty, {.max_tokens = 1, .end_of_generation = EndOfGeneration::ignore})) {
      if (piece) tokens.push_back(piece->token);
      else ++failures;
    }
  }
  CHECK(failures > 90);
  CHECK(tokens == expected);
  CHECK(std::ranges::equal(session.tokens(), reference.tokens()));
  must(session.append({}));
  must(reference.append({}));
  CHECK(checksums(session) == checksums(reference));
}

TEST_CASE("a draw that fails where the context is full leaves the stream as it was", "[streams]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = stream_session(engine);
  must(session.append(kPrompt));
  Sampler sampler = drawing();
  (void)generate(session, sampler, kContext - kPrompt.size(), kContext);
  REQUIRE(session.position() + 1 == kContext);
  REQUIRE(session.has_pending());
  Session twin = must(session.clone());
  const Snapshot before(session);
  Sampler faulty = sampling::chain().stage([](sampling::Candidates&, const sampling::Context&) { throw 1; }).build();
  for (int i = 0; i < 2; ++i) {
    const auto failed = session.generate(faulty, {.max_tokens = 1}, {});
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::callback_failed);
    CHECK(Snapshot(session) == before);
    CHECK(session.has_pending());
    CHECK_FALSE(session.edited());
  }
  CHECK(generate(session, sampler, 60, 60) == generate(twin, sampler, 60, 60));
  CHECK(session.edited());
}

TEST_CASE("a cut that failed for want of pages is made before the next append", "[stream]") {
  EngineOptions options;
  const std::uint64_t page = must(load_golden("llama-long").session()).kv().layout().page_bytes();
  options.kv_budget = 5 * page;
  const Engine engine = load_golden("llama-long", options);
  const std::uint32_t vocab = engine.spec().vocab_size;
  Session session = must(engine.session({.context = 128, .stream = {.sinks = 4, .window = 32}}));
  must(session.append(make_tokens(1, 96, vocab)));
  {
    Session fork = must(session.fork());
    must(session.append(make_tokens(2, 32, vocab)));  // full; the cut would need three pages of its own
    CHECK(session.position() == 128);
    CHECK(session.append(make_tokens(3, 1, vocab)).error().code() == ErrorCode::cache_full);
    CHECK(session.position() == 128);
  }
  must(session.append(make_tokens(3, 1, vocab)));
  CHECK(session.position() == 37);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("a full session that is restored as a stream goes on", "[stream]") {
  const Engine engine = load_golden("llama-long");
  const std::uint32_t vocab = engine.spec().vocab_size;
  Session session = must(engine.session({.context = 128}));
  must(session.append(make_tokens(1, 128, vocab)));
  std::vector<std::byte> saved;
  must(session.save([&](std::span<const std::byte> bytes) {
    saved.insert(saved.end(), bytes.begin(), bytes.end());
    return Status();
  }));
  Session stream = must(engine.restore(saved, {.context = 128, .stream = {.sinks = 4, .window = 32}}));
  SECTION("and is as it was after an append that is refused") {
    const Snapshot before(stream);
    std::stop_source stopped;
    stopped.request_stop();
    const std::vector<Token> token = {5}, none = {}, bad = {5, -5};
    CHECK(stream.append(bad).error().code() == ErrorCode::invalid_argument);
    CHECK(same_bits(must(stream.append(none))[0], before.logits));  // they are known: nothing is computed
    CHECK(stream.append(token, {.logits = static_cast<LogitsOf>(77)}).error().code() == ErrorCode::invalid_argument);
    CHECK(stream.append(token, {.stop = stopped.get_token()}).error().code() == ErrorCode::cancelled);
    CHECK(stream.append(make_tokens(3, 128, vocab)).error().code() == ErrorCode::cache_full);
    CHECK(stream.score(bad).error().code() == ErrorCode::invalid_argument);
    Batch batch;
    must(batch.add(stream, bad));
    CHECK(engine.forward(batch).error().code() == ErrorCode::invalid_argument);
    CHECK(Snapshot(stream) == before);
    CHECK_FALSE(stream.edited());
  }
  SECTION("also with a token pending, which a draw that fails leaves pending") {
    Session pending = must(engine.session({.context = 128}));
    must(pending.append(make_tokens(1, 127, vocab)));
    Sampler greedy = sampling::chain().greedy().build();
    must(pending.generate(greedy, {.max_tokens = 2, .end_of_generation = EndOfGeneration::ignore}, {}));
    REQUIRE(pending.position() == 128);
    REQUIRE(pending.has_pending());
    const auto last = pending.tokens().back();
    saved.clear();
    must(pending.save([&](std::span<const std::byte> bytes) {
      saved.insert(saved.end(), bytes.begin(), bytes.end());
      return Status();
    }));
    Session full = must(engine.restore(saved, {.context = 128, .stream = {.sinks = 4, .window = 32}}));
    Sampler faulty = sampling::chain().stage([](sampling::Candidates&, const sampling::Context&) { throw 1; }).build();
    for (int i = 0; i < 2; ++i) {
      REQUIRE(!full.generate(faulty, {.max_tokens = 1}, {}));
      CHECK(full.has_pending());
      CHECK(full.tokens().back() == last);
      CHECK(full.position() == 36);
    }
    must(full.append({}));
    CHECK(must(full.verify()).verdict == Verdict::same);
  }
  must(stream.append(make_tokens(2, 1, vocab)));
  CHECK(stream.position() == 37);
}

TEST_CASE("a stream's cuts do not change how many prompt tokens its figures count", "[stream]") {
  const Engine engine = load_golden("llama-long");
  Session session = must(engine.session({.context = 128, .stream = {.sinks = 4, .window = 32}}));
  must(session.append(make_tokens(1, 120, engine.spec().vocab_size)));
  must(session.append(make_tokens(2, 8, engine.spec().vocab_size)));
  Sampler sampler = sampling::chain().greedy().build();
  CHECK(must(session.generate(sampler, {.max_tokens = 1}, {})).figures.prompt_tokens == 128);
}

}  // namespace test_streams
