// A step's rows that are not the session's in the end: drafts, and logits from an early layer.
#include "engine/made_model.hpp"
#include "engine/inside.hpp"
#include "engine/views.hpp"
#include "engine/run/streams.hpp"

namespace test_drafts {

using namespace tessera;
using namespace tessera::test;
using detail::Head;
using detail::Keep;
using detail::RowOutput;
using detail::Run;

namespace {

constexpr std::uint32_t kVocab = 96;
constexpr MadeShape kTwoLayers{.d_model = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = kVocab, .context = 128};

// The same first layer, embeddings and head, and nothing else.
MadeShape one_layer() {
  MadeShape shape = kTwoLayers;
  shape.layers = 1;
  return shape;
}

Token best(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

// Adds rows that want logits, one after another in `to`  [tokens, vocab].
std::size_t add_drafts(Run& run, Session::State& session, std::span<const Token> tokens, std::vector<float>& to) {
  const std::size_t part = run.begin_part(session);
  to.resize(tokens.size() * kVocab);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    run.add({.token = tokens[i], .output = RowOutput::logits, .to = to.data() + i * kVocab});
  }
  return part;
}

}  // namespace

TEST_CASE("of drafts each row has its logits, and as many are kept as the caller says", "[drafts]") {
  const MadeModel model = make_model(kTwoLayers, DType::f32);
  const Engine engine = model.load();
  const auto prompt = made_tokens(30, kVocab, 1), drafts = made_tokens(6, kVocab, 2);
  Session plain = must(engine.session());
  must(plain.append(prompt));
  const std::vector<float> expected = all_logits(plain, drafts, drafts.size());
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    for (const bool pending : {false, true}) {
      for (std::size_t kept = 0; kept <= drafts.size(); ++kept) {
        Session session = must(engine.session({.kv = {.kind = kind, .page_tokens = 16}}));
        must(session.append(std::span(prompt).first(29)));
        if (pending) must(session.add_pending(prompt[29]));
        else must(session.append(std::span(prompt).last(1)));
        const Snapshot before(session);
        Session::State& state = *state_of(session);
        {
          Run run(*detail::view_of(state).shared, detail::all_layers(*detail::view_of(state).shared));
          std::vector<float> logits;
          const std::size_t part = add_drafts(run, state, drafts, logits);
          must(detail::make_ready(run, part));
          run.compute();
          must(run.outcome(part));
          CHECK(same_bits(logits, expected));
          run.commit(part, kept == 0 ? 0 : kept + (pending ? 1 : 0));
        }
        if (kept == 0) {
          CHECK(Snapshot(session) == before);
        } else {
          CHECK(session.position() == 30 + kept);
          CHECK(session.tokens().size() == 30 + kept);
          CHECK(session.kv().bytes() == must(session.clone()).kv().bytes());  // no pages of what went
        }
        // What follows is what would have come.
        must(session.append(std::span(drafts).subspan(kept), {.logits = LogitsOf::none}));
        CHECK(same_bits(must(session.append({}))[0], std::span(expected).last(kVocab)));
        CHECK(checksums(session) == checksums(plain));
      }
    }
  }
}

TEST_CASE("logits from an early layer are those of a model that ends there", "[drafts]") {
  const MadeModel model = make_model(kTwoLayers, DType::f32), early_model = make_model(one_layer(), DType::f32);
  const Engine engine = model.load(), early = early_model.load();
  const auto prompt = made_tokens(20, kVocab, 5);
  Session reference = must(early.session());
  const std::vector<float> expected = all_logits(reference, prompt, prompt.size());
  Session session = must(engine.session());
  Session::State& state = *state_of(session);
  std::vector<float> logits;
  Run run(*detail::view_of(state).shared, {.first_layer = 0, .last_layer = 1, .head = Head::anywhere});
  const std::size_t part = add_drafts(run, state, prompt, logits);
  must(detail::make_ready(run, part));
  run.compute();
  must(run.outcome(part));
  CHECK(same_bits(logits, expected));
  run.undo(part);
  Run strict(*detail::view_of(state).shared, {.first_layer = 0, .last_layer = 1});
  CHECK(strict.check(add_drafts(strict, state, prompt, logits)).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("drafts of the first layer alone share the session's keys and values, and leave no trace", "[drafts]") {
  const MadeModel model = make_model(kTwoLayers, DType::f32), early_model = make_model(one_layer(), DType::f32);
  const Engine engine = model.load(), early = early_model.load();
  const auto prompt = made_tokens(31, kVocab, 6);
  constexpr std::size_t kDrafts = 5;
  // What a model of the first layer says greedily.
  Session drafter = must(early.session());
  must(drafter.append(prompt));
  std::vector<Token> expected;
  for (std::size_t i = 0; i < kDrafts; ++i) {
    expected.push_back(best(drafter.logits()));
    must(drafter.append({&expected.back(), 1}));
  }

  Session session = must(engine.session({.kv = {.page_tokens = 16}}));
  must(session.append(std::span(prompt).first(30)));
  must(session.add_pending(prompt[30]));
  const Snapshot before(session);
  Session::State& state = *state_of(session);
  std::vector<Token> drafts;
  std::vector<float> logits(kVocab);
  // The pending token is computed by the first layer alone, then each draft behind it: at reserved positions.
  for (std::size_t i = 0; i < kDrafts; ++i) {
    Run run(*detail::view_of(state).shared, {.first_layer = 0, .last_layer = 1, .head = Head::anywhere, .keep = Keep::nothing});
    const std::size_t part = i == 0 ? run.begin_part(state) : run.begin_drafts(state, i);
    if (i > 0) run.add({.token = drafts.back()});
    run.rows(part).back().output = RowOutput::logits;
    run.rows(part).back().to = logits.data();
    must(detail::make_ready(run, part));
    run.compute();
    must(run.outcome(part));
    run.leave(part);
    CHECK(std::ranges::equal(session.tokens(), before.tokens));
    CHECK(session.position() == before.position);
    drafts.push_back(best(logits));
  }
  CHECK(drafts == expected);

  // All layers look at them in one run, and what is kept is what the session would have had without drafts.
  Session plain = must(engine.session({.kv = {.page_tokens = 16}}));
  must(plain.append(prompt));
  const std::vector<float> plain_logits = all_logits(plain, std::span(drafts).first(3), 3);
  std::vector<float> checked;
  {
    Run run(*detail::view_of(state).shared, detail::all_layers(*detail::view_of(state).shared));
    const std::size_t part = add_drafts(run, state, drafts, checked);
    must(detail::make_ready(run, part));
    run.compute();
    must(run.outcome(part));
    run.commit(part, 1 + 3);
  }
  CHECK(same_bits(std::span(checked).first(plain_logits.size()), plain_logits));
  CHECK(std::ranges::equal(session.tokens(), plain.tokens()));
  CHECK(checksums(session) == checksums(plain));
  CHECK(session.kv().bytes() == plain.kv().bytes());
  CHECK(must(session.verify()).verdict == Verdict::same);
}

}  // namespace test_drafts
