// KvOptions::budget: so many tokens of a sequence keep their keys and values, and which, however the sequence comes about.
#include <array>
#include <optional>

#include <tessera/decoding/beam_search.hpp>
#include <tessera/decoding/drafters.hpp>

#include "engine/induction_model.hpp"
#include "engine/kv_rig.hpp"

namespace test_token_budget {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr TokenBudget kBudget{.tokens = 160, .choice = TokenChoice::snapkv, .sinks = 3};
constexpr TokenChoice kChoices[] = {TokenChoice::window, TokenChoice::h2o, TokenChoice::snapkv};

TokenBudget budget_of(TokenChoice choice, std::uint32_t tokens = 160) {
  TokenBudget budget = kBudget;
  budget.choice = choice;
  budget.tokens = tokens;
  return budget;
}
// With room for every choice.
EngineOptions with_votes(EngineOptions options = {}) {
  options.kv.budget = budget_of(TokenChoice::snapkv);
  return options;
}

std::vector<Token> tokens_of(const Session& session) { return {session.tokens().begin(), session.tokens().end()}; }

std::vector<Token> draw(Session& session, std::size_t n, std::size_t chunk = 1000, SpeculateOptions speculate = {}) {
  Sampler sampler = sampling::chain().temperature(1.3f).seed(5).build();
  std::vector<Token> drawn;
  while (drawn.size() < n) {
    const GenerateOptions options{.max_tokens = std::min(chunk, n - drawn.size()),
                                  .end_of_generation = EndOfGeneration::ignore, .speculate = speculate};
    for (const auto& piece : session.generate(sampler, options)) drawn.push_back(must(Result<Piece>(piece)).token);
  }
  return drawn;
}

// The same tokens, keys and values.
struct State {
  explicit State(Session& session) {
    must(session.append({}));  // no pending token
    tokens = tokens_of(session);
    sums = checksums(session);
    logits.assign(session.logits().begin(), session.logits().end());
  }
  bool operator==(const State& other) const {
    return tokens == other.tokens && sums == other.sums && same_bits(logits, other.logits);
  }
  std::vector<Token> tokens;
  std::vector<std::uint64_t> sums;
  std::vector<float> logits;
};

ErrorCode code_of(const Engine& engine, const SessionOptions& options) {
  const auto session = engine.session(options);
  REQUIRE(!session);
  return session.error().code();
}

}  // namespace

TEST_CASE("a budget leaves seven eighths of it, and the session is the replay of what was done", "[token-budget]") {
  const KvRig rig(with_votes());
  for (const TokenChoice choice : kChoices) {
    for (const DType dtype : {DType::f32, DType::f16, DType::int8}) {
      for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
        CAPTURE(static_cast<int>(choice), to_string(dtype));
        Session session = rig.session({.dtype = dtype, .kind = kind, .budget = budget_of(choice)});
        Session plain = rig.session({.dtype = dtype, .budget = {.tokens = kNoTokenBudget}});
        must(session.append(rig.prompt(300)));
        must(plain.append(rig.prompt(300)));
        CHECK(same_bits(session.logits(), plain.logits()));  // the prompt is computed in full
        CHECK(session.edited());
        CHECK(session.position() == 140);
        CHECK(std::ranges::equal(session.tokens().first(3), rig.prompt(3)));
        CHECK(std::ranges::equal(session.tokens().last(32), rig.part(300 - 32, 32)));
        CHECK(session.kv().bytes() <= session.kv().layout().page_bytes() * 5 + system_memory().granularity());
        CHECK(must(session.verify()).verdict == Verdict::same);
        draw(session, 100);
        CHECK(session.position() < 160);
        CHECK(session.next_position() == 400);
        const Verification found = must(session.verify());
        INFO(found.what);
        CHECK(found.verdict == Verdict::same);
      }
    }
  }
}

TEST_CASE("a window's budget is keep_window() by hand", "[token-budget]") {
  const KvRig rig;
  Session session = rig.session({.budget = budget_of(TokenChoice::window)});
  Session manual = rig.session();
  must(session.append(rig.prompt(300)));
  must(manual.append(rig.prompt(300)));
  must(manual.keep_window(3, 137));
  CHECK(State(session) == State(manual));
  // A session within its budget is as one without.
  Session less = rig.session({.budget = budget_of(TokenChoice::window)});
  must(less.append(rig.prompt(159)));
  CHECK(!less.edited());
  must(less.append(rig.part(159, 1)));
  CHECK(less.position() == 140);
}

TEST_CASE("a sequence with a budget is the same in any layout, steps, threads and company", "[token-budget]") {
  const KvRig rig(with_votes());
  EngineOptions other = with_votes();
  other.step_rows = 37;
  other.threads = 1;
  const KvRig small(other);
  for (const TokenChoice choice : kChoices) {
    CAPTURE(static_cast<int>(choice));
    const TokenBudget budget = budget_of(choice);
    Session session = rig.session({.budget = budget});
    must(session.append(rig.prompt(250)));
    const std::vector<Token> drawn = draw(session, 90);
    const State expected(session);
    for (const std::size_t chunk : {1u, 7u}) {
      Session again = small.session({.kind = KvKind::contiguous, .page_tokens = 16, .budget = budget});
      must(again.append(rig.prompt(250)));
      CHECK(draw(again, 90, chunk) == drawn);
      CHECK(State(again) == expected);
    }
    // Others in the step, some of which vote too.
    Session again = rig.session({.page_tokens = 64, .budget = budget});
    std::vector<Session> others;
    for (std::size_t i = 0; i < 5; ++i) others.push_back(rig.session({.budget = budget_of(kChoices[i % 3])}));
    Batch batch;
    for (std::size_t i = 0; i < 3; ++i) must(batch.add(others[i], rig.part(i, 190)));
    must(batch.add(again, rig.prompt(250)));
    for (std::size_t i = 3; i < 5; ++i) must(batch.add(others[i], rig.part(i, 90)));
    must(must(rig.engine.forward(batch)).status());
    CHECK(draw(again, 90) == drawn);
    CHECK(State(again) == expected);
    // Copies go on as it does.
    Session parent = rig.session({.budget = budget});
    must(parent.append(rig.prompt(250)));
    const std::vector<Token> beginning = draw(parent, 13);
    for (Session& copy : std::array{must(parent.fork()), must(parent.clone())}) {
      std::vector<Token> all = beginning;
      Sampler sampler = sampling::chain().temperature(1.3f).seed(5).build();
      for (const auto& piece : copy.generate(sampler, {.max_tokens = 77, .end_of_generation = EndOfGeneration::ignore})) {
        all.push_back(must(Result<Piece>(piece)).token);
      }
      CHECK(all == drawn);
      CHECK(State(copy) == expected);
    }
  }
}

TEST_CASE("drafts are not seen in what a budget keeps", "[token-budget]") {
  const KvRig rig(with_votes());
  for (const TokenChoice choice : kChoices) {
    CAPTURE(static_cast<int>(choice));
    std::vector<State> states;
    std::vector<std::vector<Token>> drawn;
    std::size_t accepted = 0;
    for (const bool drafts : {false, true}) {
      Session session = rig.session({.budget = budget_of(choice, 400)});
      must(session.append(rig.prompt(340)));
      Sampler sampler = sampling::chain().greedy().build();
      GenerateOptions options{.max_tokens = 200, .end_of_generation = EndOfGeneration::ignore};
      if (drafts) options.speculate = {.drafter = must(ngram_drafter()), .max_drafts = 6, .length = DraftLength::longest};
      auto generation = session.generate(sampler, options);
      drawn.emplace_back();
      while (auto piece = generation.next()) drawn.back().push_back(must(*std::move(piece)).token);
      accepted = generation.figures().accepted;
      states.emplace_back(session);
    }
    CHECK(drawn[0] == drawn[1]);
    CHECK(states[0] == states[1]);
    CHECK(accepted > 0);
  }
}

TEST_CASE("pages that sequences share outlive a drop, and do not change it", "[token-budget]") {
  const KvRig rig(with_votes());
  for (const TokenChoice choice : kChoices) {
    CAPTURE(static_cast<int>(choice));
    const TokenBudget budget = budget_of(choice);
    Session lone = rig.session({.prefix = PrefixReuse::off, .budget = budget});
    must(lone.append(rig.prompt(300)));
    const State expected(lone);
    Session first = rig.session({.budget = {.tokens = kNoTokenBudget}});
    must(first.append(rig.prompt(300)));
    const std::vector<float> logits(first.logits().begin(), first.logits().end());
    Session second = rig.session({.budget = budget});
    must(second.append(rig.prompt(300)));
    // Of the rows that are asked none comes from the index; of h2o no row does.
    CHECK(second.reused() == (choice == TokenChoice::window ? 288u : choice == TokenChoice::snapkv ? 256u : 0u));
    CHECK(State(second) == expected);
    CHECK(must(first.verify()).verdict == Verdict::same);
    Session third = rig.session({.budget = {.tokens = kNoTokenBudget}});
    must(third.append(rig.prompt(300)));
    CHECK(third.reused() == 288);
    CHECK(same_bits(third.logits(), logits));
    // Forks share until one of them drops.
    Session child = rig.session({.prefix = PrefixReuse::off, .budget = budget});
    must(child.append(rig.prompt(150)));
    Session twin = must(child.fork());
    must(child.append(rig.part(150, 150)));
    CHECK(child.position() == 140);
    CHECK(twin.position() == 150);
    CHECK(must(twin.verify()).verdict == Verdict::same);
    CHECK(must(child.verify()).verdict == Verdict::same);
  }
}

TEST_CASE("a session with a budget is saved and goes on with the same bits", "[token-budget]") {
  const KvRig rig(with_votes());
  for (const TokenChoice choice : kChoices) {
    CAPTURE(static_cast<int>(choice));
    const KvOptions kv{.budget = budget_of(choice)};
    Session session = rig.session(kv);
    must(session.append(rig.prompt(250)));
    draw(session, 15);
    std::vector<std::byte> bytes;
    must(session.save([&](std::span<const std::byte> piece) -> Status {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    }));
    Session restored = must(rig.engine.restore(bytes, {.kv = kv}));
    CHECK(must(restored.verify()).verdict == Verdict::same);
    CHECK(draw(restored, 60) == draw(session, 60));
    CHECK(State(restored) == State(session));
  }
}

TEST_CASE("a drop that finds no memory is made up for", "[token-budget]") {
  // Two forks of a prompt fill the pool: the drop of one needs pages of its own, which come when the other ends.
  const KvRig probe;
  EngineOptions options = with_votes();
  options.kv_budget = probe.page_bytes() * 10;
  const KvRig rig(options);
  const KvOptions kv{.prefix = PrefixReuse::off, .budget = budget_of(TokenChoice::snapkv, 224)};
  Session session = rig.session(kv);
  must(session.append(rig.prompt(192)));
  std::optional<Session> twin = must(session.fork());
  Session filler = rig.session({.prefix = PrefixReuse::off});
  must(filler.append(rig.part(7, 96)));  // 6 + 3 of 10 pages
  must(session.append(rig.part(192, 32)));
  CHECK(session.position() == 224);  // as many as without a budget: nothing could be dropped
  CHECK(!session.append(rig.part(224, 1)));
  CHECK(session.position() == 224);
  twin.reset();
  must(session.append(rig.part(224, 1)));
  CHECK(session.position() == 197);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("budgets that cannot be are refused by name", "[token-budget]") {
  const KvRig rig;
  CHECK(code_of(rig.engine, {.kv = {.budget = budget_of(TokenChoice::h2o)}}) == ErrorCode::invalid_argument);  // no room for votes
  CHECK(code_of(rig.engine, {.kv = {.budget = budget_of(TokenChoice::window, 127)}}) == ErrorCode::invalid_argument);
  CHECK(code_of(rig.engine, {.kv = {.budget = budget_of(TokenChoice::window, 1025)}}) == ErrorCode::invalid_argument);
  CHECK(code_of(rig.engine, {.kv = {.budget = {.tokens = 200, .choice = static_cast<TokenChoice>(9)}}}) == ErrorCode::invalid_argument);
  CHECK(code_of(rig.engine, {.kv = {.budget = kBudget}, .stream = {.window = 20}}) == ErrorCode::invalid_argument);
  const KvRig counting(with_votes());
  CHECK(code_of(counting.engine, {.kv = {.budget = {.tokens = 160, .choice = TokenChoice::snapkv, .sinks = 120}}}) == ErrorCode::invalid_argument);
  CHECK(code_of(counting.engine, {.kv = {.prefix = PrefixReuse::on, .budget = budget_of(TokenChoice::h2o)}}) == ErrorCode::invalid_argument);
  CHECK(code_of(counting.engine, {.kv = {.budget = budget_of(TokenChoice::snapkv)}, .context = 150}) == ErrorCode::invalid_argument);
  Session session = counting.session({.budget = kBudget});
  CHECK(session.budget().tokens == 160);
  CHECK(session.budget().recent == kAskingRows);
  CHECK(BeamSearch::start(session, {.beams = 2}).error().code() == ErrorCode::unsupported);
  // Models whose tokens cannot be moved.
  for (const auto& [model, why] : {std::pair("gpt2", "learned positions"), std::pair("hunyuan-dense", "behind their rotation"),
                                   std::pair("qwen35", "recurrent")}) {
    for (const TokenChoice choice : kChoices) {
      const auto engine = Engine::load(golden_dir() / (std::string(model) + ".gguf"), {.kv = {.budget = budget_of(choice)}});
      REQUIRE(!engine);
      CHECK(engine.error().code() == ErrorCode::unsupported);
      CHECK(engine.error().message().find(why) != std::string::npos);
    }
  }
}

TEST_CASE("the plan has what votes take, and no more is taken", "[token-budget]") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-long.gguf"));
  const Plan without = must(Engine::plan(file, {.threads = 2})), with = must(Engine::plan(file, with_votes({.threads = 2})));
  const std::uint64_t heads = load_golden("llama-long").spec().layers[0].n_heads;
  CHECK(with.workspace - without.workspace == 32 * heads * 1024 * sizeof(float));
  CHECK(with.peak > without.peak);
  const Plan window = must(Engine::plan(file, {.kv = {.budget = budget_of(TokenChoice::window)}, .threads = 2}));
  CHECK(window.workspace == without.workspace);
}

TEST_CASE("at a quarter of the tokens snapkv keeps the needles that a window loses", "[token-budget]") {
  constexpr std::uint32_t kLength = 512, kNeedles = 20;
  const MadeModel model = induction_model(kLength + 32);
  const Engine engine = model.load({.kv = {.budget = {.tokens = kLength / 4, .choice = TokenChoice::snapkv}}});
  const auto found_by = [&](const TokenBudget& budget) {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < kNeedles; ++i) {
      // Words of 0 to 31, the needle (a word of 32 to 47, and behind it one of 48 to 63), and at the end its first word.
      std::vector<Token> text = make_tokens(i, kLength, 32);
      const Token asked = static_cast<Token>(32 + i % 16), answer = static_cast<Token>(48 + (7 * i) % 16);
      const std::size_t at = 30 + i * (kLength / 2) / kNeedles;
      text[at] = asked;
      text[at + 1] = answer;
      text.back() = asked;
      Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off, .budget = budget}}));
      must(session.append(text));
      // Asked again, of what is left.
      must(session.truncate(session.position() - 1));
      const Logits logits = must(session.append(std::span(&asked, 1)));
      const auto best = std::ranges::max_element(logits.values) - logits.values.begin();
      if (best == answer) ++found;
    }
    return found;
  };
  CHECK(found_by({.tokens = kNoTokenBudget}) == kNeedles);
  CHECK(found_by({.tokens = kLength / 4, .choice = TokenChoice::window}) == 0);
  CHECK(found_by({.tokens = kLength / 4, .choice = TokenChoice::snapkv}) >= kNeedles * 95 / 100);
}

}  // namespace test_token_budget
