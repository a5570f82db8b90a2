// Layers that see a window and the first tokens of the sequence (attention.global_tokens): what a row sees, and that it computes
// the same however the sequence comes about.
#include "engine/kv_rig.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_global_tokens {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kVocab = 60;

MadeModel model_of(const std::vector<std::int32_t>& windows, const std::vector<std::int32_t>& globals, std::uint32_t context = 1024) {
  return make_model({.d_model = 64, .layers = static_cast<std::uint32_t>(windows.size()), .heads = 4, .kv_heads = 2, .ffn = 96,
                     .vocab = kVocab, .context = context, .windows = windows, .globals = globals},
                    DType::f32);
}
// A window with global tokens, within a chunk of 256 keys and past it; everything; a window alone.
MadeModel mixed(std::int32_t globals = 300) { return model_of({40, 0, 20, 33}, {globals, 0, 0, 5}); }

std::vector<float> whole(const Engine& engine, std::span<const Token> tokens, const KvOptions& kv = {.dtype = DType::f32}) {
  Session session = must(engine.session({.kv = kv}));
  return all_logits(session, tokens, tokens.size());
}

}  // namespace

TEST_CASE("a row sees its window and the global tokens, and nothing else", "[globals]") {
  constexpr std::size_t kTokens = 48, kWindow = 7, kGlobals = 5;
  const MadeModel model = model_of({kWindow}, {kGlobals}, 64);
  const auto tokens = make_tokens(1, kTokens, kVocab);
  for (const Numerics numerics : {Numerics::reference, Numerics::automatic}) {
    const Engine engine = model.load({.numerics = numerics});
    const auto before = whole(engine, tokens);
    for (std::size_t key = 0; key < kTokens; ++key) {
      auto other = tokens;
      other[key] = (other[key] + 1) % static_cast<Token>(kVocab);
      const auto after = whole(engine, other);
      for (std::size_t row = 0; row < kTokens; ++row) {
        const bool sees = key <= row && (key < kGlobals || row - key < kWindow);
        const auto of_row = [&](const std::vector<float>& all) { return std::span(all).subspan(row * kVocab, kVocab); };
        INFO("token " << key << ", row " << row);
        REQUIRE(same_bits(of_row(before), of_row(after)) == !sees);
      }
    }
  }
}

TEST_CASE("without global tokens there is the window, and with enough of them everything is seen", "[globals]") {
  const auto tokens = make_tokens(2, 100, kVocab);
  const auto logits = [&](std::int32_t window, std::int32_t globals) {
    return whole(model_of({window, window}, {globals, globals}, 128).load(), tokens);
  };
  CHECK(same_bits(logits(10, 0), whole(model_of({10, 10}, {}, 128).load(), tokens)));
  CHECK(same_bits(logits(28, 100), logits(0, 0)));
  CHECK(same_bits(logits(0, 9), logits(0, 0)));
  CHECK(!same_bits(logits(10, 3), logits(10, 0)));
  CHECK(!same_bits(logits(10, 3), logits(10, 4)));
  const Engine engine = model_of({10, 0}, {90, 90}, 128).load();
  CHECK(engine.spec().layers[0].globals == 90);
  CHECK(engine.spec().layers[1].globals == 0);
}

TEST_CASE("kernels agree with scalar code over windows and global tokens", "[globals]") {
  const auto tokens = make_tokens(3, 500, kVocab);
  const auto ours = whole(mixed().load(), tokens), scalar = whole(mixed().load({.numerics = Numerics::reference}), tokens);
  float difference = 0, largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference = std::max(difference, std::abs(ours[i] - scalar[i]));
    largest = std::max(largest, std::abs(scalar[i]));
  }
  CHECK(difference < 1e-4f * largest);
}

TEST_CASE("the same bits with global tokens, whatever the chunks, layouts, types, threads and neighbours", "[globals]") {
  const MadeModel model = mixed();
  const auto tokens = make_tokens(4, 420, kVocab);
  for (const Numerics numerics : {Numerics::automatic, Numerics::reference}) {
    const Engine engine = model.load({.numerics = numerics, .threads = 3}),
                 one = model.load({.numerics = numerics, .threads = 1, .step_rows = 70});
    for (const DType dtype : {DType::f32, DType::f16, DType::k8v4}) {
      INFO(to_string(dtype));
      const auto expected = whole(engine, tokens, {.dtype = dtype, .kind = KvKind::contiguous, .page_tokens = 64});
      CHECK(same_bits(whole(one, tokens, {.dtype = dtype, .page_tokens = 16}), expected));
      Session session = must(engine.session({.kv = {.dtype = dtype, .page_tokens = 16}}));
      std::vector<float> found;
      for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
        const std::size_t n = std::min<std::size_t>(turn % 3 == 0 ? 1 : turn % 3 == 1 ? 90 : 17, tokens.size() - at);
        const Logits logits = must(session.append(std::span(tokens).subspan(at, n), {.logits = LogitsOf::all}));
        found.insert(found.end(), logits.values.begin(), logits.values.end());
        at += n;
      }
      CHECK(same_bits(found, expected));
      CHECK(must(session.verify()).verdict == Verdict::same);
      // Many that share its pages, at once.
      std::vector<Session> forks;
      Batch batch;
      for (std::size_t i = 0; i < 9; ++i) forks.push_back(must(session.fork()));
      for (Session& fork : forks) must(batch.add(fork, make_tokens(5, 3, kVocab)));
      const Outputs outputs = must(engine.forward(batch));
      Session alone = must(session.clone());
      must(alone.append(make_tokens(5, 3, kVocab)));
      for (std::size_t i = 0; i < forks.size(); ++i) CHECK(same_bits(outputs.row(3 * i + 2), alone.logits()));
    }
  }
}

TEST_CASE("sessions with global tokens are cut, copied, found and saved as others are", "[globals]") {
  const MadeModel model = mixed();
  const Engine engine = model.load();
  const auto tokens = make_tokens(6, 400, kVocab);
  const auto first = [&](std::size_t n) { return std::span<const Token>(tokens).first(n); };
  const auto expected = whole(engine, tokens);
  const auto after = [&](std::size_t n) { return std::span(expected).subspan((n - 1) * kVocab, kVocab); };
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  must(session.append(tokens));
  CHECK(session.kv().first_of_layer(0) == 0);  // all of it is kept
  CHECK(session.kv().first_of_layer(2) > 0);
  CHECK(session.kv().layout().layers[0].group == session.kv().layout().layers[1].group);

  const Session restored = must(model.load({.threads = 1}).restore(saved(session)));
  check_same(session, restored);
  must(session.truncate(session.kv().first() + 20));
  must(session.append(std::span<const Token>(tokens).subspan(session.position(), 350 - session.position())));
  CHECK(same_bits(session.logits(), after(350)));
  must(session.truncate(100));  // behind a window: computed again
  must(session.append({}));
  CHECK(same_bits(session.logits(), after(100)));
  Session fork = must(session.fork());
  must(fork.append(first(330).subspan(100)));
  CHECK(same_bits(fork.logits(), after(330)));

  Session found = must(engine.session({.kv = {.dtype = DType::f32}}));
  must(found.append(first(390)));
  CHECK(found.reused() > 300);
  CHECK(same_bits(found.logits(), after(390)));
  must(found.truncate(found.position() - 3));

  Session edited = must(engine.session({.kv = {.dtype = DType::f32, .prefix = PrefixReuse::off}}));
  must(edited.append(first(30)));
  must(edited.remove(2, 9));  // later tokens become global ones
  must(edited.append(first(380).subspan(30)));
  CHECK(must(edited.verify()).verdict == Verdict::same);
}

TEST_CASE("rows vote for global tokens as for those of their windows", "[globals]") {
  const MadeModel model = model_of({60, 60}, {20, 150});
  const TokenBudget budget{.tokens = 160, .choice = TokenChoice::h2o, .sinks = 3};
  const Engine engine = model.load({.kv = {.budget = budget}});
  const Engine one = model.load({.kv = {.budget = budget}, .threads = 1, .step_rows = 70});
  const auto tokens = make_tokens(7, 300, kVocab);
  Session session = must(engine.session()), other = must(one.session({.kv = {.page_tokens = 16}}));
  must(session.append(tokens));
  must(other.append(tokens));
  CHECK(session.tokens().size() < 160);
  CHECK(must(session.verify()).verdict == Verdict::same);
  CHECK(std::ranges::equal(session.tokens(), other.tokens()));
  CHECK(checksums(session) == checksums(other));
  // All rows see the global tokens, and few see one of the others: of 150 most are kept.
  const auto kept = session.tokens();
  std::size_t globals = 0;
  while (globals < kept.size() && kept[globals] == tokens[globals]) ++globals;
  CHECK(globals > 40);
}

TEST_CASE("the plan counts a layer with global tokens in full", "[globals]") {
  const MadeModel with = mixed(), without = model_of({40, 0, 20, 33}, {});
  const auto plan = [](const MadeModel& model) { return must(Engine::plan(model.file(), {.threads = 1})); };
  CHECK(plan(with).kv == plan(without).kv);  // a prompt that fills the context holds the pages of windows too
  const Engine engine = with.load({.threads = 1});
  Session session = must(engine.session());
  must(session.append(make_tokens(8, 1024, kVocab)));
  const KvLayout& layout = session.kv().layout();
  REQUIRE(layout.groups.size() == 2);
  CHECK(layout.groups[0].window == 0);
  CHECK(layout.groups[1].window == 20);
  CHECK(session.kv().bytes() >= layout.pages(1024) * layout.groups[0].page_bytes);
  CHECK(session.kv().bytes() <= plan(with).kv);
}

TEST_CASE("global tokens that a file says wrongly are refused", "[globals]") {
  const auto refused = [](const std::vector<std::int32_t>& globals) {
    const auto engine = Engine::load(model_of({10, 10}, globals, 64).file());
    REQUIRE(!engine);
    return engine.error();
  };
  CHECK(refused({3}).code() == ErrorCode::corrupt_file);
  CHECK_THAT(refused({3, -1}).text(), Catch::Contains("global_tokens"));
}

}  // namespace test_global_tokens
