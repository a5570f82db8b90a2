// The target as drafters of an application see it (DraftTarget): what it tells, and guesses by its draft heads and by its first layers.
#include "decoding/speculation_rig.hpp"
#include "engine/mtp_models.hpp"

namespace test_draft_target {

using namespace tessera;
using namespace tessera::test;

namespace {

Token likeliest(std::span<const float> logits) { return static_cast<Token>(std::ranges::max_element(logits) - logits.begin()); }

// A drafter of an application: the likeliest tokens of the model's draft heads, or where it has none, of its first layer.
std::shared_ptr<const Drafter> likeliest_guesses(std::size_t* drafted = nullptr) {
  return says([drafted, logits = std::vector<float>(), hidden = std::vector<float>()](const DraftContext& context, std::span<Token> out) mutable {
    const DraftTarget& target = context.target;
    logits.resize(target.engine().spec().vocab_size);
    hidden.resize(target.hidden().size());
    if (context.history.size() != target.computed() + 1) return std::size_t{0};
    TargetGuesses guesses = must(hidden.empty() ? target.guess_by_layers(1) : target.guess_by_heads(out.size(), hidden));
    Token last = context.history.back();
    for (Token& draft : out) {
      must(guesses.next(last, logits, context.stop));
      last = draft = likeliest(logits);
    }
    if (drafted != nullptr) *drafted += out.size();
    return out.size();
  });
}

// Calls `look` once, with the target of a session of this engine, whose prompt is computed and whose first drawn token is pending.
void with_target(const Engine& engine, const std::function<void(const DraftContext&)>& look, std::size_t prompt = 9,
                 const SessionOptions& options = {}) {
  bool called = false;
  const auto drafter = says([&](const DraftContext& context, std::span<Token>) {
    if (!std::exchange(called, true)) look(context);
    return std::size_t{0};
  });
  (void)generated(engine, request_kinds()[0], make_tokens(3, prompt, 24), {.drafter = drafter, .length = DraftLength::longest}, options);
  CHECK(called);
}

template <class T>
ErrorCode code(const Result<T>& result) {
  REQUIRE(!result);
  return result.error().code();
}

}  // namespace

TEST_CASE("an application's drafter guesses with the target as the library's do", "[speculation][mtp]") {
  for (const bool has_head : {false, true}) {
    const Engine engine = has_head ? load_mtp("trained") : load_golden("llama-gqa");
    const auto prompt = make_tokens(3, 9, 24);
    std::size_t drafted = 0;
    const auto own = must(has_head ? head_drafter() : early_exit_drafter(1));
    for (const RequestKind& kind : request_kinds()) {
      INFO(kind.name << (has_head ? ", by the head" : ", by the first layer"));
      const Outcome plain = generated(engine, kind, prompt, {});
      const auto spec = [&](std::shared_ptr<const Drafter> drafter) {
        return generated(engine, kind, prompt, {.drafter = std::move(drafter), .max_drafts = 4, .length = DraftLength::longest});
      };
      const Outcome ours = spec(likeliest_guesses(&drafted)), library = spec(own);
      CHECK(ours.told == plain.told);
      CHECK(*ours.session == *plain.session);
      if (kind.name != "greedy") continue;
      CHECK(ours.figures.drafted == library.figures.drafted);
      CHECK(ours.figures.accepted == library.figures.accepted);
    }
    CHECK(drafted > 100);
  }
}

TEST_CASE("a target tells its computed tokens and the hidden state that heads read", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  with_target(engine, [&](const DraftContext& context) {
    const DraftTarget& target = context.target;
    CHECK(target.engine().spec().vocab_size == engine.spec().vocab_size);
    CHECK(target.computed() == 9);
    CHECK(context.history.size() == 10);
    // The final norm of the last computed token, which an embedding is.
    Session alone = must(engine.session());
    Batch batch;
    for (const Token token : context.history.first(9)) must(batch.add(alone, {.token = token, .want = Want::embedding}));
    const Outputs outputs = must(engine.forward(batch));
    CHECK(same_bits(target.hidden(), outputs.row(8)));
  });
  with_target(load_mtp("trained", {}), [](const DraftContext& context) {
    CHECK(context.target.hidden().empty());
    CHECK(code(context.target.guess_by_heads(1, {})) == ErrorCode::invalid_state);
  });
}

TEST_CASE("a guess that does not follow, or has no room, is an error and changes nothing", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  with_target(engine, [&](const DraftContext& context) {
    const DraftTarget& target = context.target;
    const std::size_t vocab = engine.spec().vocab_size;
    const Token last = context.history.back();
    std::vector<float> hidden(engine.spec().d_model), logits(vocab), again(vocab), less(vocab - 1);
    CHECK(code(target.guess_by_heads(4, std::span(hidden).first(1))) == ErrorCode::invalid_argument);
    CHECK(code(target.guess_by_heads(4000000, hidden)) == ErrorCode::cache_full);
    CHECK(code(target.guess_by_layers(0)) == ErrorCode::invalid_argument);
    CHECK(code(target.guess_by_layers(engine.spec().n_layers())) == ErrorCode::invalid_argument);
    for (const bool by_heads : {true, false}) {
      TargetGuesses guesses = must(by_heads ? target.guess_by_heads(2, hidden) : target.guess_by_layers(1));
      CHECK(code(guesses.next(last == 0 ? 1 : 0, logits)) == ErrorCode::invalid_argument);
      CHECK(code(guesses.next(last, less)) == ErrorCode::invalid_argument);
      must(guesses.next(last, logits));
      CHECK(code(guesses.next(static_cast<Token>(vocab), logits)) == ErrorCode::invalid_argument);
      CHECK(code(guesses.next(-1, logits)) == ErrorCode::invalid_argument);
      must(guesses.next(likeliest(logits), logits));
    }
    TargetGuesses guesses = must(target.guess_by_heads(1, hidden));
    must(guesses.next(last, logits));
    CHECK(code(guesses.next(last, logits)) == ErrorCode::invalid_state);
  });
}

TEST_CASE("guesses end when one fails, and when others begin", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  const auto look = [&](const DraftContext& context) {
    const DraftTarget& target = context.target;
    const Token last = context.history.back();
    std::vector<float> hidden(engine.spec().d_model), logits(engine.spec().vocab_size);
    TargetGuesses by_heads = must(target.guess_by_heads(2, hidden));
    must(by_heads.next(last, logits));
    TargetGuesses by_layers = must(target.guess_by_layers(1));
    CHECK(code(by_heads.next(last, logits)) == ErrorCode::invalid_state);
    for (int i = 0; i < 3; ++i) must(by_layers.next(last, logits));
    CHECK(code(by_layers.next(last, logits)) == ErrorCode::cache_full);  // which gives all room back
    CHECK(code(by_layers.next(last, logits)) == ErrorCode::invalid_state);
    CHECK(code(by_heads.next(last, logits)) == ErrorCode::invalid_state);
    must(must(target.guess_by_heads(2, hidden)).next(last, logits));
  };
  with_target(engine, look, 15, {.kv = {.page_tokens = 16}, .context = 18});
}

TEST_CASE("layers of a model with recurrent layers do not guess alone", "[speculation]") {
  const Engine engine = load_golden("qwen35");
  CHECK(code(DraftTarget::check_layers(engine, 1)) == ErrorCode::unsupported);
}

}  // namespace test_draft_target
