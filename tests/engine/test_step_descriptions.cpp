// A step is a value: another executor, with weights and pages of its own, makes the same bits of the descriptions of an engine's steps.
#include <functional>

#include <tessera/decoding/drafters.hpp>

#include "engine/drawing_backend.hpp"
#include "engine/kv_twins.hpp"
#include "engine/head_models.hpp"
#include "engine/mtp_models.hpp"
#include "engine/recorded_steps.hpp"

namespace test_step_descriptions {

using namespace tessera;
using namespace tessera::test;

namespace {

using Load = std::function<Engine()>;

// Uses an engine, then executes its steps again when the engine is gone.
Covered replay(const Load& load, const std::function<void(const Engine&)>& use) {
  std::vector<RecordedStep> record;
  std::vector<KvLayout> layouts;
  {
    const Engine engine = load();
    record_steps(engine, record);
    use(engine);
    layouts = layouts_of(engine);
  }
  REQUIRE(record.size() > 3);
  const Engine other = load();
  Replay again(other, std::move(layouts));
  again.run(record);
  CHECK(again.compared > 3);
  return again.covered;
}

std::vector<Token> tokens_of(const Engine& engine, std::uint64_t seed, std::size_t n) { return make_tokens(seed, n, engine.spec().vocab_size); }

// Knows a sequence, and is wrong at every fourth token. Its trees have the right tokens on their second branch.
class Knows final : public Drafter {
 public:
  explicit Knows(std::vector<Token> sequence) : sequence_(std::move(sequence)) {}
  Result<std::unique_ptr<Drafter>> start(const Engine&) const override { return std::unique_ptr<Drafter>(std::make_unique<Knows>(sequence_)); }
  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t at = context.history.size() + i;
      out[i] = at % 4 == 0 ? 5 : sequence_[std::min(at, sequence_.size() - 1)];
    }
    return out.size();
  }
  Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t at = context.history.size() + i - std::min<std::size_t>(i, 2);
      if (i < 2) out[i] = {.token = 7, .parent = i == 0 ? kNoDraft : 0};
      else out[i] = {.token = sequence_[std::min(at, sequence_.size() - 1)], .parent = i == 2 ? kNoDraft : i - 1};
    }
    return out.size();
  }

 private:
  std::vector<Token> sequence_;
};

void decode(Session& session, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto logits = session.logits();
    const auto token = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
    must(session.append({&token, 1}));
  }
}

bool can_move(const Engine& engine) {
  const ModelSpec& spec = engine.spec();
  return spec.positions != Positions::learned && std::ranges::none_of(spec.layers, &LayerSpec::is_recurrent) &&
         std::ranges::none_of(spec.layers, [](const LayerSpec& layer) { return layer.head_norm_place == HeadNormPlace::behind_rope; });
}

// Prompts in several steps, decoding, cuts, removals, several sessions at once, and with pages: forks and prefixes that are found.
void use_sessions(const Engine& engine, const SessionOptions& options) {
  const bool paged = options.kv.kind == KvKind::paged;
  Session first = must(engine.session(options));
  const auto prompt = tokens_of(engine, 1, 41);
  must(first.append(prompt, {.logits = LogitsOf::all}));
  decode(first, 9);
  must(first.truncate(33));
  must(first.append(tokens_of(engine, 2, 3)));
  Session second = paged ? must(first.fork()) : must(engine.session(options));
  must(second.append(tokens_of(engine, 3, 2)));
  must(first.append(tokens_of(engine, 4, 2)));
  decode(second, 3);
  decode(first, 12);
  {
    Session found = must(engine.session(options));  // in pages that the index has, where there is one
    must(found.append(prompt));
    decode(found, 2);
  }
  Session third = must(engine.session(options));
  for (std::size_t turn = 0; turn < 3; ++turn) {
    Batch batch;
    for (Session* session : {&first, &second, &third}) must(batch.add(*session, tokens_of(engine, 5 + turn, 1 + 2 * turn)));
    must(must(engine.forward(batch)).status());
  }
  if (!can_move(engine) || first.kv().first() > 0) return;
  if (paged) {
    Session shared = must(first.fork());
    must(shared.remove(4, 11));
    decode(shared, 2);
  }
  must(first.remove(20, 25));
  decode(first, 3);
}

}  // namespace

TEST_CASE("another executor makes the same bits of an engine's steps", "[steps]") {
  for (const std::string model : {"llama-gqa", "gpt2", "gemma3", "gemma2", "qwen35", "granitehybrid", "deepseek-v2-lite", "gemma4-e", "qwen2moe"}) {
    for (const DType type : {DType::f16, DType::int8}) {
      for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
        INFO(model << ", " << to_string(type) << (kind == KvKind::paged ? ", paged" : ", contiguous"));
        const Load load = [&] { return load_golden(model, {.step_rows = 8, .freed_pages = FreedPages::fill_nan}); };
        if (!holds(load(), type)) continue;
        const SessionOptions options{.kv = {.dtype = type, .kind = kind, .page_tokens = 16}};
        const Covered covered = replay(load, [&](const Engine& engine) { use_sessions(engine, options); });
        CHECK((covered.copies > 0) == (kind == KvKind::paged));
        if (model == "llama-gqa") CHECK(covered.moves > 0);
      }
    }
  }
}

TEST_CASE("the steps of sessions of several layouts are described together", "[steps]") {
  (void)replay([] { return load_golden("gemma3", {.step_rows = 16}); }, [](const Engine& engine) {
    Session a = must(engine.session({.kv = {.dtype = DType::f16, .page_tokens = 16}}));
    Session b = must(engine.session({.kv = {.dtype = DType::int8, .page_tokens = 32}}));
    Session c = must(engine.session({.kv = {.kind = KvKind::contiguous}}));
    for (std::size_t turn = 0; turn < 12; ++turn) {
      Batch batch;
      for (Session* session : {&a, &b, &c}) must(batch.add(*session, tokens_of(engine, turn, 1 + turn % 5)));
      must(must(engine.forward(batch)).status());
      if (turn == 6) c = must(engine.session({.kv = {.kind = KvKind::contiguous, .page_tokens = 64}}));  // gets c's number
    }
  });
}

TEST_CASE("steps with drafts, trees and guesses are described", "[steps]") {
  const auto generate = [](const Engine& engine, std::shared_ptr<const Drafter> drafter, std::uint32_t branches) {
    Session session = must(engine.session({.kv = {.page_tokens = 16}}));
    must(session.append(tokens_of(engine, 7, 21)));
    Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
    GenerateOptions how{.max_tokens = 30, .end_of_generation = EndOfGeneration::ignore};
    how.speculate = {.drafter = std::move(drafter), .length = DraftLength::longest, .branches = branches};
    Generation generation = session.generate(sampler, how);
    for (const auto& piece : generation) (void)must(Result<Piece>(piece));
    if (how.speculate.drafter != nullptr) CHECK(generation.figures().drafted > 5);
    must(session.append(tokens_of(engine, 8, 3)));
    return std::vector<Token>(session.tokens().begin(), session.tokens().end());
  };
  for (const std::string model : {"llama-gqa", "gemma3", "qwen35"}) {
    INFO(model);
    const auto sequence = generate(load_golden(model), {}, 1);
    const Covered covered = replay([&] { return load_golden(model); }, [&](const Engine& engine) {
      CHECK(generate(engine, std::make_shared<Knows>(sequence), 1) == sequence);
      CHECK(generate(engine, std::make_shared<Knows>(sequence), 3) == sequence);
      if (model != "qwen35") CHECK(generate(engine, must(early_exit_drafter(1)), 1) == sequence);  // its state cannot take drafts of early layers
    });
    if (model == "qwen35") CHECK(covered.drafts > 0);  // states of drafts
    else CHECK(covered.branches > 0);
  }
  for (const std::string& model : mtp_models()) {
    INFO(model);
    CHECK(replay([&] { return load_mtp(model); }, [&](const Engine& engine) { (void)generate(engine, must(head_drafter()), 1); }).guesses > 0);
  }
  for (const HeadCase& heads : head_cases()) {
    INFO(heads.name());
    const Covered covered = replay([&] { return load_heads(heads); }, [&](const Engine& engine) {
      CHECK(generate(engine, must(head_drafter()), 1) == generate(engine, must(head_drafter()), 4));
    });
    CHECK(covered.guesses > 0);
    CHECK(covered.branches > 0);
  }
}

TEST_CASE("tokens drawn on the backend, embeddings, ranges of layers, votes and streams are described", "[steps]") {
  const Load load = [] { return load_golden("llama-gqa"); };
  const Load drawing = [] {
    Engine engine = load_golden("llama-gqa");
    make_drawing(engine);
    return engine;
  };
  const Covered drawn = replay(drawing, [](const Engine& engine) {
    std::vector<Session> sessions;
    std::vector<Sampler> samplers;
    for (std::uint64_t i = 0; i < 5; ++i) {
      sessions.push_back(must(engine.session()));
      samplers.push_back(i == 0 ? sampling::chain().greedy().build() : sampling::chain().top_k(20).temperature(0.7f).seed(i).build());
    }
    for (std::size_t turn = 0; turn < 6; ++turn) {
      Batch batch;
      for (std::size_t i = 0; i < sessions.size(); ++i) must(batch.add(sessions[i], tokens_of(engine, i, 3 + i), samplers[i]));
      must(must(engine.forward(batch)).status());
    }
  });
  CHECK(drawn.draws == 30);
  const Covered embedded = replay(load, [](const Engine& engine) {
    Session session = must(engine.session()), lower = must(engine.session()), upper = must(engine.session());
    const std::vector<float> embedding(engine.spec().d_model, 0.25f);
    for (std::size_t turn = 0; turn < 4; ++turn) {
      Batch batch;
      must(batch.add(session, tokens_of(engine, turn, 3), Want::embedding));
      must(batch.add(session, Row{.embedding = embedding, .want = Want::hidden}));
      must(must(engine.forward(batch)).status());
      Batch below, above;
      must(below.add(lower, tokens_of(engine, turn, 1), Want::hidden));
      const Outputs outputs = must(engine.forward(below, {.last_layer = 1}));
      must(above.add(upper, Row{.embedding = outputs.row(0), .want = Want::logits}));
      must(must(engine.forward(above, {.first_layer = 1})).status());
    }
  });
  CHECK(embedded.embeddings == 8);
  const TokenBudget budget{.tokens = 160, .choice = TokenChoice::h2o, .sinks = 3};
  const Covered counted = replay([&] { return load_golden("llama-long", {.kv = {.budget = budget}, .step_rows = 32}); }, [&](const Engine& engine) {
    Session session = must(engine.session());
    for (std::size_t turn = 0; turn < 5; ++turn) must(session.append(tokens_of(engine, turn, 60)));
  });
  CHECK(counted.votes > 0);
  CHECK(counted.moves > 0);
  const Covered cut = replay(load, [](const Engine& engine) {
    Session session = must(engine.session({.kv = {.page_tokens = 16}, .context = 48, .stream = {.sinks = 2, .window = 19}}));
    must(session.append(tokens_of(engine, 9, 7)));
    Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
    for (const auto& piece : session.generate(sampler, {.max_tokens = 90, .end_of_generation = EndOfGeneration::ignore})) {
      (void)must(Result<Piece>(piece));
    }
  });
  CHECK(cut.moves > 0);
}

TEST_CASE("a description is the same if it is made again, and another for another step", "[steps]") {
  std::vector<RecordedStep> once, again;
  for (std::vector<RecordedStep>* record : {&once, &again}) {
    const Engine engine = load_golden("llama-gqa", {.step_rows = 8});
    record_steps(engine, *record);
    use_sessions(engine, {.kv = {.kind = KvKind::paged, .page_tokens = 16}});
  }
  REQUIRE(once.size() == again.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(once[i].step == again[i].step);
    CHECK(once[i].move == again[i].move);
    if (i > 0 && once[i].kind == RecordedStep::Kind::step) CHECK_FALSE(once[i].step == once[i - 1].step);
  }
}

}  // namespace test_step_descriptions
