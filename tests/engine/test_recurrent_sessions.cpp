// Sessions of models with recurrent layers: whatever was done to one, its logits are those of its tokens computed from nothing.
#include <tessera/decoding/drafters.hpp>

#include "engine/session_walk.hpp"

namespace test_recurrent_sessions {

using namespace tessera;
using namespace tessera::test;

namespace {

const char* const kModels[] = {"qwen35", "qwen3next", "lfm2", "granitehybrid", "nemotron_h", "nemotron_h_moe"};

bool equal(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The logits after the tokens, of a session that shares nothing.
std::vector<float> from_nothing(const Engine& engine, std::span<const Token> tokens) {
  Session fresh = must(engine.session({.kv = {.kind = KvKind::contiguous}}));
  const Logits logits = must(fresh.append(tokens));
  return {logits.values.begin(), logits.values.end()};
}

// What is pending is computed; then the two agree.
void check_twin(const Engine& engine, Session& session) {
  if (session.tokens().empty()) return;
  const std::vector<Token> tokens(session.tokens().begin(), session.tokens().end());
  const Logits logits = must(session.append({}));
  CHECK(session.position() == tokens.size());
  REQUIRE(equal(logits.values, from_nothing(engine, tokens)));
}

}  // namespace

TEST_CASE("random walks of sessions with recurrent layers agree with twins that recompute", "[recurrent]") {
  for (const char* model : kModels) {
    INFO(model);
    SessionWalk walk(model, {DType::f32}, 11);
    walk.run(80);
    CHECK(walk.stopped > 0);
    CHECK(walk.full > 0);
    CHECK(walk.suspended > 0);
    CHECK(walk.refused > 0);
  }
}

TEST_CASE("a session is truncated to every position", "[recurrent]") {
  for (const char* model : kModels) {
    const Engine engine = load_golden(model);
    const std::vector<Token> tokens = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    for (const std::uint32_t checkpoints : {1u, 2u, kAllCheckpoints}) {
      const Session whole = [&] {
        Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off, .checkpoints = checkpoints}}));
        must(session.append(tokens));
        return session;
      }();
      for (std::size_t n = 1; n < tokens.size(); ++n) {
        INFO(model << " " << n << ", " << checkpoints << " checkpoints");
        Session session = must(whole.fork());
        must(session.truncate(n));
        CHECK(session.tokens().size() == n);
        if (n / 16 + checkpoints >= tokens.size() / 16 + 1) CHECK(session.position() == n / 16 * 16);  // a page's tokens are pending at most
        check_twin(engine, session);
      }
    }
  }
}

// A file has the live state and no checkpoints: what is truncated is computed again from the start, with the same bits.
TEST_CASE("a restored session is truncated to every position", "[recurrent]") {
  for (const char* model : kModels) {
    const Engine engine = load_golden(model);
    const std::vector<Token> tokens = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    const KvOptions kv{.page_tokens = 16, .prefix = PrefixReuse::off, .checkpoints = kAllCheckpoints};
    std::vector<std::byte> saved;
    {
      Session session = must(engine.session({.kv = kv}));
      must(session.append(tokens));
      must(session.save([&](std::span<const std::byte> bytes) {
        saved.insert(saved.end(), bytes.begin(), bytes.end());
        return Status();
      }));
    }
    for (std::size_t n = 1; n <= tokens.size(); ++n) {
      INFO(model << " " << n);
      Session session = must(engine.restore(saved, {.kv = kv}));
      CHECK(session.position() == tokens.size());
      must(session.truncate(n));
      CHECK(session.tokens().size() == n);
      CHECK(session.position() == (n == tokens.size() ? n : 0));
      check_twin(engine, session);
      if (n % 8 != 0 || n == tokens.size()) continue;
      // What was computed again has left checkpoints of its own.
      must(session.append(std::span(tokens).first(tokens.size() - n)));
      must(session.truncate(tokens.size() - 1));
      CHECK(session.position() == (tokens.size() - 1) / 16 * 16);
      check_twin(engine, session);
    }
  }
}

TEST_CASE("drafts are not seen in what a recurrent model writes", "[recurrent]") {
  for (const char* model : kModels) {
    const Engine engine = load_golden(model, {.tokenizer = TokenizerUse::none});
    const std::vector<Token> tokens = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    const auto write = [&](std::shared_ptr<const Drafter> drafter) {
      Session session = must(engine.session({.kv = {.page_tokens = 16}}));
      must(session.append(std::span(tokens).first(20)));
      Sampler sampler = sampling::chain().temperature(0.5f).seed(3).build();
      GenerateOptions options{.max_tokens = 24};
      options.speculate = {.drafter = std::move(drafter), .length = DraftLength::longest};
      std::vector<Token> out;
      for (auto piece : session.generate(sampler, options)) out.push_back(must(piece).token);
      check_twin(engine, session);
      return out;
    };
    INFO(model);
    CHECK(write(must(ngram_drafter())) == write(nullptr));
    CHECK(write(must(suffix_drafter())) == write(nullptr));
  }
}

TEST_CASE("what a state cannot have is refused by name", "[recurrent]") {
  const Engine engine = load_golden("qwen35");
  const auto stream = engine.session({.stream = {.sinks = 2, .window = 8}});
  REQUIRE(!stream);
  CHECK(stream.error().code() == ErrorCode::unsupported);
  CHECK(stream.error().text().find("recurrent") != std::string::npos);
  Session session = must(engine.session());
  must(session.append(read_tokens(golden_dir() / "qwen35.tokens.txt")));
  const Status edit = session.remove(2, 5);
  REQUIRE(!edit);
  CHECK(edit.error().code() == ErrorCode::unsupported);
  CHECK(edit.error().text().find("recurrent") != std::string::npos);
  check_twin(engine, session);
  // Drafts of the first layers would be written over the state of the whole model.
  Sampler sampler = sampling::chain().greedy().build();
  GenerateOptions options{.max_tokens = 4};
  options.speculate = {.drafter = must(early_exit_drafter(2)), .length = DraftLength::longest};
  Generation early = session.generate(sampler, options);
  const auto piece = early.next();
  REQUIRE(piece);
  REQUIRE(!*piece);
  CHECK(piece->error().code() == ErrorCode::unsupported);
}

}  // namespace test_recurrent_sessions
