// Sessions of models with latent attention: what a token takes, and that whatever was done to a session, its logits are those of its
// tokens computed from nothing.
#include <random>

#include "models.hpp"

namespace test_latent_sessions {

using namespace tessera;
using namespace tessera::test;

namespace {

const char* const kModels[] = {"deepseek-v2-lite", "deepseek-v2", "deepseek-v3", "glm4moe-lite", "mistral4"};

bool equal(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The last logits of the session's tokens, in a session that shares nothing and takes them in pieces of `step`.
void check_twin(const Engine& engine, Session& session, std::size_t step) {
  if (session.tokens().empty()) return;
  const std::vector<Token> tokens(session.tokens().begin(), session.tokens().end());
  const Logits logits = must(session.append({}));
  const std::vector<float> mine(logits.values.begin(), logits.values.end());
  Session fresh = must(engine.session({.kv = {.dtype = session.kv().dtype(), .kind = KvKind::contiguous}}));
  std::vector<float> other;
  for (std::size_t at = 0; at < tokens.size(); at += step) {
    const Logits last = must(fresh.append(std::span(tokens).subspan(at, std::min(step, tokens.size() - at))));
    other.assign(last.values.begin(), last.values.end());
  }
  REQUIRE(equal(mine, other));
}

}  // namespace

TEST_CASE("random walks of sessions with latent attention agree with twins that recompute", "[latent]") {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  for (const char* model : kModels) {
    const Engine engine = load_golden(model);
    const std::vector<Token> text = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    std::mt19937 random(5);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::vector<Session> all;
    all.reserve(8);  // they are referred to
    for (int i = 0; i < 60; ++i) {
      INFO(model << ", step " << i);
      if (all.empty() || (all.size() < 4 && below(6) == 0)) {
        all.push_back(must(engine.session({.kv = {.dtype = kTypes[below(3)],
                                                  .kind = below(3) == 0 ? KvKind::contiguous : KvKind::paged,
                                                  .page_tokens = 16}})));
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
          const DType dtype = session.kv().dtype();
          session = must(engine.restore(saved, {.kv = {.dtype = dtype, .page_tokens = 32}}));
          break;
        }
        case 5:
          if (below(2) == 0) session = must(session.convert({.dtype = session.kv().dtype(), .page_tokens = 64}));
          else CHECK(must(session.verify()).verdict == Verdict::same);
          break;
      }
      check_twin(engine, session, 1 + below(9));
    }
  }
}

TEST_CASE("tokens are taken out of a latent cache, and a replay has the same bits", "[latent]") {
  for (const char* model : kModels) {
    INFO(model);
    const Engine engine = load_golden(model);
    const std::vector<Token> tokens = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    Session session = must(engine.session({.kv = {.dtype = DType::f32, .page_tokens = 16}}));
    must(session.append(tokens));
    // Keys of the first layer depend on their own token and position alone: those behind the removed ones are what they would be.
    must(session.remove(3, 9));
    CHECK(session.edited());
    std::vector<Token> kept(tokens.begin(), tokens.begin() + 3);
    kept.insert(kept.end(), tokens.begin() + 9, tokens.end());
    Session fresh = must(engine.session({.kv = {.dtype = DType::f32, .page_tokens = 16}}));
    must(fresh.append(kept));
    std::vector<float> a(kv::dim_of(session.kv().layout(), {})), b(a.size());
    for (std::uint64_t position = 0; position < kept.size(); ++position) {
      kv::decode(session.kv().view(), {}, position, a.data());
      kv::decode(fresh.kv().view(), {}, position, b.data());
      for (std::size_t d = 0; d < a.size(); ++d) CHECK(std::abs(a[d] - b[d]) < 1e-5f);
    }
    must(session.append(std::span(tokens).first(5)));
    CHECK(must(session.verify()).verdict == Verdict::same);
  }
}

TEST_CASE("a latent cache holds a token's latent and what rotates, once", "[latent]") {
  const Engine engine = load_golden("deepseek-v3", {.kv = {.dtype = DType::f16, .page_tokens = 32}});
  const Session session = must(engine.session());
  const KvLayout& layout = session.kv().layout();
  const std::size_t layers = engine.spec().n_layers();
  CHECK(layout.layer(0).shape == KvLayerShape{.kv_heads = 1, .key_dim = 28, .value_dim = 20, .values = kv::Values::in_keys});
  CHECK(layout.page_bytes() == layers * 32 * 28 * 2);
  CHECK(engine.plan().kv_per_token == layers * 28 * 2);
}

TEST_CASE("what latent attention cannot have is refused by name", "[latent]") {
  const Engine engine = load_golden("deepseek-v3");
  const auto session = engine.session({.kv = {.dtype = DType::int8}});
  REQUIRE(!session);
  CHECK(session.error().code() == ErrorCode::unsupported);
  CHECK(session.error().text().find("latent attention") != std::string::npos);
  const KvLayerShape odd[] = {{.kv_heads = 1, .key_dim = 9, .value_dim = 4, .values = kv::Values::in_keys}};
  const KvLayerShape wide[] = {{.kv_heads = 1, .key_dim = 4, .value_dim = 8, .values = kv::Values::in_keys}};
  for (const auto& shape : {odd, wide}) {
    const auto layout = make_kv_layout({shape, 1}, DType::f32);
    REQUIRE(!layout);
    CHECK(layout.error().code() == ErrorCode::invalid_argument);
  }
}

}  // namespace test_latent_sessions
