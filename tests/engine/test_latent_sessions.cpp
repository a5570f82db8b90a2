// Sessions of models with latent attention: what a token takes, and that whatever was done to a session, its logits are those of its
// tokens computed from nothing.
#include <tessera/extend/kv/records.hpp>

#include "engine/session_walk.hpp"

namespace test_latent_sessions {

using namespace tessera;
using namespace tessera::test;

namespace {

const char* const kModels[] = {"deepseek-v2-lite", "deepseek-v2", "deepseek-v3", "glm4moe-lite", "mistral4"};

}  // namespace

TEST_CASE("random walks of sessions with latent attention agree with twins that recompute", "[latent]") {
  for (const char* model : kModels) {
    INFO(model);
    SessionWalk walk(model, {DType::f32, DType::f16, DType::bf16}, 5);
    walk.run(80);
    CHECK(walk.stopped > 0);
    CHECK(walk.full > 0);
    CHECK(walk.suspended > 0);
    CHECK(walk.edited > 0);
  }
}

TEST_CASE("a latent session is truncated to every position", "[latent]") {
  for (const char* model : kModels) {
    const Engine engine = load_golden(model);
    const std::vector<Token> tokens = read_tokens(golden_dir() / (std::string(model) + ".tokens.txt"));
    Session whole = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
    must(whole.append(tokens));
    for (std::size_t n = 1; n < tokens.size(); ++n) {
      INFO(model << " " << n);
      Session session = must(whole.fork());
      must(session.truncate(n));
      CHECK(session.position() == n);  // nothing is pending
      const Logits logits = must(session.append(std::span(tokens).subspan(n, 1)));
      CHECK(same_bits(logits.values, lone_logits(engine, session.kv().dtype(), std::span(tokens).first(n + 1))));
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
