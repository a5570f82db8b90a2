// MTP heads: what they guess against transformers' MtpModel, and that a session with one is what it is without, and keeps what a session
// promises.
#include <algorithm>
#include <cmath>
#include <optional>

#include <tessera/extend/decoding/draft_target.hpp>
#include <tessera/extend/kv/records.hpp>

#include "engine/changed_model.hpp"
#include "engine/kv_twins.hpp"
#include "engine/mtp_models.hpp"
#include "engine/inside.hpp"
#include "engine/views.hpp"
#include "engine/session_walk.hpp"

namespace test_mtp {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr float kTolerance = 1e-4f;
constexpr std::size_t kChain = 3;

// Guesses for a session with one pending token: the head's logits behind it, and behind each of the further tokens. nullopt: there is no
// room for them.
std::optional<std::vector<float>> guesses_if_there_is_room(Session& session, std::span<const Token> further) {
  Session::State& state = *state_of(session);
  const ModelSpec& spec = session.engine().spec();
  std::vector<float> hidden(spec.d_model), logits((1 + further.size()) * spec.vocab_size);
  auto head = DraftTarget(state).guess_by_heads(1 + further.size(), hidden);
  if (!head) {
    REQUIRE(head.error().code() == ErrorCode::cache_full);
    return std::nullopt;
  }
  for (std::size_t i = 0; i <= further.size(); ++i) {
    const Token token = i == 0 ? session.tokens().back() : further[i - 1];
    must(head->next(token, std::span(logits).subspan(i * spec.vocab_size, spec.vocab_size)));
  }
  kv_of(session).commit(session.kv().length());  // what was reserved
  return logits;
}
std::vector<float> guesses(Session& session, std::span<const Token> further = {}) { return guesses_if_there_is_room(session, further).value(); }

float largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float largest = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float d = std::fabs(a[i] - b[i]);
    if (!(d <= largest)) largest = d;
  }
  return largest;
}

Token likeliest(std::span<const float> logits) { return static_cast<Token>(std::ranges::max_element(logits) - logits.begin()); }

std::string refusal(const Result<Engine>& engine) { return engine ? "" : engine.error().text(); }

}  // namespace

TEST_CASE("an MTP head guesses what transformers' does", "[mtp]") {
  std::vector<std::string> names = mtp_models();
  names.push_back("trained");
  for (const std::string& name : names) {
    const Engine engine = load_mtp(name);
    const auto tokens = read_tokens(mtp_file(name, ".tokens.txt"));
    const auto expected = read_floats(mtp_file(name, ".guesses.f32"));
    const std::size_t vocab = engine.spec().vocab_size;
    const auto row = [&](std::size_t i) { return std::span(expected).subspan(i * vocab, vocab); };
    REQUIRE(expected.size() == (tokens.size() - 1 + kChain) * vocab);
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}, tokens.size()}) {  // of the prompt
      Session session = must(engine.session({.kv = {.dtype = DType::f32, .page_tokens = 16}}));
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (session.position() == i) must(session.append(std::span(tokens).subspan(i, std::min(chunk, tokens.size() - 1 - i))));
        if (session.position() != i + 1) continue;
        must(session.add_pending(tokens[i + 1]));
        std::vector<Token> further;  // of the last row, the chain
        for (std::size_t at = tokens.size() - 2; i + 2 == tokens.size() && further.size() < kChain; ++at) further.push_back(likeliest(row(at)));
        INFO(name << ", behind " << i + 1 << " tokens, " << chunk << " at once");
        CHECK(largest_difference(guesses(session, further), std::span(expected).subspan(i * vocab, (1 + further.size()) * vocab)) <= kTolerance);
        must(session.truncate(i + 1));
      }
    }
  }
}

// There is no hidden state before position 0: the head was trained without a key there.
TEST_CASE("a guess does not see position 0", "[mtp]") {
  std::vector<std::string> names = mtp_models();
  names.push_back("trained");
  for (const std::string& name : names) {
    const Engine engine = load_mtp(name);
    const std::size_t head = engine.spec().n_layers();
    const auto tokens = make_tokens(4, 36, engine.spec().vocab_size);
    for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
      for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{35}}) {
        INFO(name << ", behind " << n << " tokens");
        Session session = must(engine.session({.kv = {.dtype = DType::f32, .kind = kind, .page_tokens = 16, .prefix = PrefixReuse::off}}));
        must(session.append(std::span(tokens).first(n)));
        must(session.add_pending(tokens[n]));
        const auto before = guesses(session, std::span(tokens).first(kChain));
        const KvView view = session.kv().view();
        const KvLayerShape& shape = view.layout->layer(head).shape;
        const std::vector<float> other(std::max(shape.key_dim, shape.value_dim), 20.0f);
        for (std::size_t i = 0; i < shape.kv_heads; ++i) {
          kv::encode(view, {.layer = head, .part = kv::KeyOrValue::key, .head = i}, 0, other.data());
          if (shape.values != kv::Values::in_keys) kv::encode(view, {.layer = head, .part = kv::KeyOrValue::value, .head = i}, 0, other.data());
        }
        CHECK(same_bits(guesses(session, std::span(tokens).first(kChain)), before));
      }
    }
  }
}

TEST_CASE("a model with its MTP head gives its own bits", "[mtp]") {
  for (const std::string& name : mtp_models()) {
    const Engine with = load_mtp(name), without = load_mtp(name, {});
    CHECK(with.spec().n_layers() == without.spec().n_layers());
    CHECK(with.spec().n_left_out == 0);
    CHECK(without.spec().n_left_out == 1);
    const auto tokens = make_tokens(3, 50, with.spec().vocab_size);
    Session a = must(with.session()), b = must(without.session());
    CHECK(same_bits(all_logits(a, tokens, 7), all_logits(b, tokens, 50)));
    // Rows that want nothing, a hidden state and an embedding, in one batch.
    const auto wanted = [&](const Engine& engine) {
      Session session = must(engine.session());
      Batch batch;
      constexpr Want kWants[] = {Want::nothing, Want::hidden, Want::embedding, Want::logits};
      for (std::size_t i = 0; i < 40; ++i) must(batch.add(session, {.token = tokens[i], .want = kWants[i * 7 % 4]}));
      const Outputs outputs = must(engine.forward(batch));
      std::vector<float> all;
      for (std::size_t i = 0; i < 40; ++i) all.insert(all.end(), outputs.row(i).begin(), outputs.row(i).end());
      return all;
    };
    CHECK(same_bits(wanted(with), wanted(without)));
  }
}

TEST_CASE("what an MTP head keeps is the same however its session came about", "[mtp]") {
  std::size_t full = 0;
  for (const std::string& name : mtp_models()) {
    INFO(name);
    SessionWalk walk("mtp/" + name, {DType::f32}, 7, {.mtp = MtpHeads::load, .threads = 2});
    const auto text = make_tokens(5, 8, 24);
    std::size_t guessed = 0;
    walk.compare = [&](Session& session, Session& twin) {
      REQUIRE(checksums(session) == checksums(twin));
      if (session.tokens().size() > 40) return;
      // So are its guesses, which leave nothing behind.
      const std::size_t n = session.tokens().size();
      must(session.add_pending(text[0]));
      must(twin.add_pending(text[0]));
      if (const auto mine = guesses_if_there_is_room(session, text)) {
        CHECK(same_bits(*mine, guesses(twin, text)));
        ++guessed;
      }
      if (session.append({})) {
        must(twin.append({}));
        REQUIRE(checksums(session) == checksums(twin));
      }
      must(session.truncate(n));
    };
    walk.run(80);
    CHECK(guessed > 20);
    CHECK(walk.stopped > 0);
    CHECK(walk.suspended > 0);
    CHECK(walk.refused > 0);
    full += walk.full;
  }
  CHECK(full > 0);
}

TEST_CASE("prefixes are shared with an MTP head, up to a checkpoint", "[mtp]") {
  const auto longer = [](GgufWriter& writer) { must(writer.set("glm4moe.context_length", std::uint32_t{512})); };
  const Engine engine = changed_model("mtp/glm4moe", longer, {.mtp = MtpHeads::load, .threads = 2});
  const auto tokens = make_tokens(9, 300, engine.spec().vocab_size);
  Session first = must(engine.session({.kv = {.page_tokens = 16}})), second = must(engine.session({.kv = {.page_tokens = 16}}));
  must(first.append(tokens));
  must(second.append(tokens));
  CHECK(second.reused() == kStateTokens);
  CHECK(checksums(first) == checksums(second));
}

TEST_CASE("the plan counts an MTP head, its keys and values and its state", "[mtp]") {
  for (const std::string& name : mtp_models()) {
    const ModelFile file = must(ModelFile::open(mtp_file(name)));
    const Plan with = must(Engine::plan(file, {.mtp = MtpHeads::load})), without = must(Engine::plan(file));
    INFO(name);
    CHECK(with.weights > without.weights);
    CHECK(with.weights_per_token == without.weights_per_token);
    CHECK(with.kv > without.kv);
    const Engine engine = load_mtp(name);
    CHECK(engine.plan().peak == with.peak);
    const LayerSpec& head = engine.spec().draft_heads.layers.front();
    const std::uint64_t values = head.is_latent() ? 0 : head.value_dim;
    CHECK(with.kv_per_token == without.kv_per_token + head.n_kv_heads * (head.key_dim + values) * sizeof(float));
    Session session = must(engine.session());
    CHECK(session.kv().layout().state_bytes() >= engine.spec().d_model * sizeof(float));
  }
}

TEST_CASE("explain says what is done with a file's MTP head", "[mtp]") {
  const auto line = [](const Engine& engine) {
    for (const KernelUse& use : must(engine.explain())) {
      if (use.kind == Operation::guess_tokens) return use.kernel;
    }
    return std::string();
  };
  CHECK(line(load_mtp("qwen35")) == "MTP head, a layer");
  CHECK(line(load_mtp("qwen35", {})) == "left out: 1 of the file's layers");
}

TEST_CASE("a head that is not there, or not as it must be, is refused by name", "[mtp]") {
  CHECK(refusal(load_changed("llama-gqa", [](GgufWriter&) {}, {.mtp = MtpHeads::load})).find("has no MTP head") != std::string::npos);
  // Two layers are said to be there, and the first has no tensors.
  const Result<Engine> bare = load_changed("qwen35", [](GgufWriter& writer) {
    must(writer.set("qwen35.block_count", std::uint32_t{4}));
    must(writer.set("qwen35.nextn_predict_layers", std::uint32_t{1}));
  }, {.mtp = MtpHeads::load});
  CHECK(refusal(bare).find("blk.3.attn_norm.weight") != std::string::npos);
  CHECK(refusal(Engine::load(mtp_file("qwen35"), {.mtp = static_cast<MtpHeads>(7)})).find("leave_out or load") != std::string::npos);
}

TEST_CASE("what a session with an MTP head cannot do is refused by name", "[mtp]") {
  const Engine engine = load_mtp("glm4moe");
  const auto stream = engine.session({.stream = {.sinks = 2, .window = 8}});
  REQUIRE(!stream);
  CHECK(stream.error().text().find("MTP head") != std::string::npos);
  Session session = must(engine.session());
  must(session.append(make_tokens(1, 20, 100)));
  const Status edit = session.remove(2, 5);
  REQUIRE(!edit);
  CHECK(edit.error().code() == ErrorCode::unsupported);
  CHECK(edit.error().text().find("MTP heads") != std::string::npos);
  // Sessions of the two kinds of engine are not each other's.
  std::vector<std::byte> saved;
  must(session.save([&](std::span<const std::byte> bytes) {
    saved.insert(saved.end(), bytes.begin(), bytes.end());
    return Status();
  }));
  CHECK(!load_mtp("glm4moe", {}).restore(saved));
}

}  // namespace test_mtp
