// Sessions of models with recurrent layers: whatever was done to one, its logits are those of its tokens computed from nothing.
#include <random>

#include <tessera/decoding/drafters.hpp>

#include "models.hpp"

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
    const Engine engine = load_golden(model);
    const std::vector<Token> text = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    std::mt19937 random(11);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    INFO(model);
    std::vector<Session> all;
    all.reserve(8);  // they are referred to
    for (int i = 0; i < 60; ++i) {
      if (all.empty() || (all.size() < 4 && below(6) == 0)) {
        all.push_back(must(engine.session({.kv = {.kind = below(3) == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}})));
      }
      Session& session = all[below(all.size())];
      const std::size_t length = session.tokens().size();
      switch (below(6)) {
        case 0:
        case 1: {
          const std::size_t room = session.kv().capacity() - length, n = 1 + below(24);
          if (n > room) break;
          std::vector<Token> some(n);
          for (Token& token : some) token = text[below(4)];
          must(session.append(some));
          break;
        }
        case 2: must(session.truncate(below(length + 1))); break;
        case 3:
          if (session.kv().kind() == KvKind::paged && all.size() < 6) all.push_back(must(session.fork()));
          break;
        case 4: {
          std::vector<std::byte> saved;
          must(session.save([&](std::span<const std::byte> bytes) {
            saved.insert(saved.end(), bytes.begin(), bytes.end());
            return Status();
          }));
          session = must(engine.restore(saved, {.kv = {.page_tokens = 32}}));
          break;
        }
        case 5:
          if (below(2) == 0) session = must(session.convert({.page_tokens = 64}));
          else CHECK(must(session.verify()).verdict == Verdict::same);
          break;
      }
      check_twin(engine, session);
    }
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
