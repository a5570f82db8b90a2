// Trees of drafts: how they become chains, and contract 8 with them. Whatever branches there are, a request gives the same
// tokens, log-probabilities and text, bit for bit, and leaves the same session and nothing else.
#include <algorithm>

#include "decoding/decoding.hpp"
#include "decoding/draft_tree.hpp"
#include "decoding/speculation_rig.hpp"
#include "engine/drawing_backend.hpp"
#include "engine/inside.hpp"

namespace test_draft_trees {

using namespace tessera;
using namespace tessera::test;
using detail::Decoding;
using detail::DraftTree;
using detail::Run;

namespace {

constexpr auto kNone = DraftTree::kNone;

DraftTree grown(std::span<const TreeDraft> drafts, const DraftTree::Limits& limits, Token end = -1) {
  DraftTree tree(16);
  tree.grow(drafts, limits, [&](Token token) { return token == end; });
  return tree;
}

SpeculateOptions trees_of(std::shared_ptr<const Drafter> drafter, std::uint32_t drafts = 12, std::uint32_t branches = 5) {
  return {.drafter = std::move(drafter), .max_drafts = drafts, .length = DraftLength::longest, .branches = branches};
}

}  // namespace

TEST_CASE("a tree is cut into chains that branch off each other", "[speculation]") {
  // 0 the - 1 cat - 3 sat - 4 on;  1 cat - 5 ran;  0 the - 2 dog - 6 is
  const std::vector<TreeDraft> drafts = {{10}, {11, 0}, {12, 0}, {13, 1}, {14, 3}, {15, 1}, {16, 2}};
  DraftTree tree = grown(drafts, {.vocab = 20, .chains = 3, .page_tokens = 16, .position = 3});
  REQUIRE(tree.chains().size() == 3);
  CHECK(tree.size() == 7);
  CHECK(tree.depth() == 4);
  CHECK(tree.length(0) == 4);
  CHECK(tree.length(1) == 1);
  CHECK(tree.drafts()[5].chain == 1);
  CHECK(tree.drafts()[6].chain == 2);
  CHECK(tree.chains()[1].depth == 2);
  CHECK(tree.chains()[2].depth == 1);
  CHECK(tree.chains()[2].of == 0);
  CHECK(tree.branches_behind(kNone) == 2);
  CHECK(tree.branches_behind(0) == 2);
  CHECK(tree.branches_behind(1) == 1);
  CHECK(tree.branches_behind(3) == 0);
  CHECK(tree.branches_behind(5) == 0);
  CHECK(tree.child(kNone, 10) == 0);
  CHECK(tree.child(1, 15) == 5);
  CHECK(tree.child(0, 15) == kNone);
  tree.leave_out(1);
  CHECK(tree.child(1, 15) == kNone);
  CHECK(tree.branches_behind(0) == 1);
  CHECK(tree.size() == 6);
  tree.follow(2);
  CHECK(tree.child(2, 16) == 6);
  CHECK(tree.child(1, 13) == kNone);

  // Of branches one may have branches of its own: it comes right behind.
  const std::vector<TreeDraft> nested = {{1}, {2}, {3, 0}, {4, 1}, {5, 1}, {6, 0}, {7, 4}};
  tree = grown(nested, {.vocab = 20, .chains = 8, .page_tokens = 16, .position = 3});
  REQUIRE(tree.chains().size() == 4);
  CHECK(tree.drafts()[5].chain == 1);  // the deepest first
  CHECK(tree.drafts()[1].chain == 2);
  CHECK(tree.drafts()[4].chain == 3);
  CHECK(tree.chains()[3].of == 2);
  CHECK(tree.branches_behind(1) == 1);
  tree.leave_out(2);
  CHECK(tree.size() == 3);

  // One that says what another says is that one, and what cannot be is left out with what follows it.
  const std::vector<TreeDraft> odd = {{1}, {1}, {2, 1}, {99}, {3, 3}, {4, 9}, {5, 2}, {6, 6}};
  tree = grown(odd, {.vocab = 20, .chains = 4, .page_tokens = 16, .position = 0}, 5);
  CHECK(tree.chains().size() == 1);
  CHECK(tree.size() == 3);
  CHECK(tree.child(0, 2) == 1);
  CHECK(tree.child(1, 5) == 2);
  // No more chains than there may be, and a branch ends with its page.
  tree = grown(drafts, {.vocab = 20, .chains = 2, .page_tokens = 16, .position = 3});
  CHECK(tree.chains().size() == 2);
  CHECK(tree.child(0, 12) == 2);
  tree = grown(drafts, {.vocab = 20, .chains = 3, .page_tokens = 16, .position = 14});
  CHECK(tree.child(0, 12) == 2);
  CHECK(tree.child(2, 16) == kNone);
  CHECK(tree.child(1, 15) == 5);
}

TEST_CASE("with trees of drafts a request gives what it gives without, whatever the sampler, model and KV type", "[speculation]") {
  std::size_t turn = 0, accepted = 0, most_steps = 0, steps = 0;
  for (const std::string& model : {std::string("llama-gqa"), std::string("mistral"), std::string("deepseek-v2-lite"), std::string("gemma3")}) {
    for (const DType type : {DType::f32, DType::f16, DType::int8, DType::int4}) {
      const bool is_packed = type == DType::int8 || type == DType::int4;
      if (is_packed && (model == "deepseek-v2-lite" || (type == DType::int4 && model != "llama-gqa"))) continue;
      // Few rows a step: a tree takes several.
      const Engine engine = load_golden(model, {.kv = {.dtype = type, .page_tokens = 16}, .step_rows = type == DType::f16 ? 5u : 64u});
      const std::uint32_t vocab = engine.spec().vocab_size;
      const auto prompt = make_tokens(3 + turn, 9 + 3 * turn % 8, vocab);
      for (const RequestKind& kind : request_kinds()) {
        if (kind.name == "a grammar" && model != "llama-gqa") continue;
        if (++turn % 2 == 0 && model != "llama-gqa") continue;
        const Outcome plain = generated(engine, kind, prompt, {});
        for (const auto& drafter : {bush(vocab, plain.sequence), bush(vocab), must(suffix_drafter({.least = 0.0f}))}) {
          for (const std::uint32_t branches : {2u, 5u}) {
            const Outcome spec = generated(engine, kind, prompt, trees_of(drafter, 12, branches));
            INFO(model << ", " << kind.name << ", KV type " << static_cast<int>(type) << ", " << branches << " branches");
            CHECK(spec.told == plain.told);
            CHECK(*spec.session == *plain.session);
            CHECK(spec.figures.tokens == 1 + spec.figures.steps + spec.figures.accepted);
            CHECK(spec.figures.accepted <= spec.figures.drafted);
            accepted += spec.figures.accepted;
            steps += spec.figures.steps;
            most_steps += plain.figures.steps;
          }
        }
      }
      engine.trim();
      CHECK(engine.kv_figures().used_bytes == 0);
    }
  }
  CHECK(accepted > most_steps / 10);
  CHECK(steps + accepted == most_steps);
}

TEST_CASE("between two pieces the session is what it is without a tree", "[speculation]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}});
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(5, 14, vocab);
  const RequestKind kind = request_kinds()[2];
  const Outcome whole = generated(engine, kind, prompt, {});
  for (std::size_t pieces = 0; pieces <= whole.told.tokens.size(); ++pieces) {
    INFO("left after " << pieces);
    const Outcome plain = generated(engine, kind, prompt, {}, {}, pieces), spec = generated(engine, kind, prompt, trees_of(bush(vocab, whole.sequence)), {}, pieces);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
  }
  Session session = must(engine.session());
  must(session.append(prompt));
  Sampler sampler = kind.sampler(engine);
  GenerateOptions how = kind.options;
  how.speculate = trees_of(bush(vocab, whole.sequence));
  Generation generation = session.generate(sampler, how);
  Told told;
  while (const auto piece = generation.next()) {
    told.add(must(Result<Piece>(*piece)));
    CHECK(session.tokens().size() == prompt.size() + told.tokens.size());
    CHECK(session.position() + 1 == session.tokens().size());
    Session fork = must(session.fork());
    must(fork.append(make_tokens(told.tokens.size(), 3, 90)));
    CHECK(must(fork.verify()).verdict == Verdict::same);
  }
  CHECK(told == whole.told);
  CHECK(must(session.verify()).verdict == Verdict::same);
  // What the index has of it is what was kept.
  Session again = must(engine.session());
  must(again.append(std::span(whole.sequence)));
  CHECK(again.reused() >= 16);
  CHECK(must(again.verify()).verdict == Verdict::same);
}

TEST_CASE("a stream and a full context end trees where they end chains", "[speculation]") {
  const Engine engine = load_golden("llama-gqa");
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(6, 10, vocab);
  const SessionOptions stream{.kv = {.page_tokens = 16}, .context = 48, .stream = {.sinks = 2, .window = 19}};
  const SessionOptions full{.kv = {.page_tokens = 16}, .context = 37};
  for (const SessionOptions& options : {stream, full}) {
    RequestKind kind = request_kinds()[1];
    kind.options.max_tokens = options.stream.window != 0 ? 90 : 0;
    const Outcome plain = generated(engine, kind, prompt, {}, options);
    CHECK(plain.told.error.empty() == (options.stream.window != 0));
    for (const auto& drafter : {bush(vocab, plain.sequence), must(suffix_drafter({.least = 0.0f}))}) {
      const Outcome spec = generated(engine, kind, prompt, trees_of(drafter), options);
      CHECK(spec.told == plain.told);
      CHECK(*spec.session == *plain.session);
    }
  }
}

TEST_CASE("sessions that cannot be forked are asked for chains", "[speculation]") {
  const auto chains_only = [](std::size_t* trees) {
    return grows([trees](const DraftContext& context, std::span<TreeDraft> out) {
      ++*trees;
      CHECK(context.branches > 1);
      out[0] = {.token = 1};
      return std::size_t{1};
    });
  };
  const auto trees_with = [&](const Engine& engine, const SessionOptions& options) {
    std::size_t trees = 0;
    const auto prompt = make_tokens(2, 20, engine.spec().vocab_size);
    RequestKind kind = request_kinds()[1];
    const Outcome plain = generated(engine, kind, prompt, {}, options);
    CHECK(generated(engine, kind, prompt, trees_of(chains_only(&trees)), options).told == plain.told);
    const Outcome spec = generated(engine, kind, prompt, trees_of(must(suffix_drafter({.least = 0.0f}))), options);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
    return trees;
  };
  const Engine engine = load_golden("llama-long"), recurrent = load_golden("qwen35");
  CHECK(trees_with(engine, {}) > 0);
  CHECK(trees_with(engine, {.kv = {.kind = KvKind::contiguous}}) == 0);
  CHECK(trees_with(engine, {.kv = {.page_tokens = 16, .budget = {.tokens = 128, .choice = TokenChoice::window}}}) == 0);
  CHECK(trees_with(recurrent, {.kv = {.page_tokens = 16}}) == 0);
  Session session = must(engine.session());
  must(session.append({{1, 2, 3}}));
  Sampler sampler = request_kinds()[0].sampler(engine);
  for (const std::uint32_t branches : {0u, 17u}) {
    Generation generation = session.generate(sampler, {.speculate = trees_of(must(suffix_drafter()), 8, branches)});
    const auto piece = generation.next();
    REQUIRE(piece);
    CHECK(piece->error().code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("branches that find no pages are left out", "[speculation]") {
  const SessionOptions options{.kv = {.page_tokens = 16}};
  const Engine roomy = load_golden("llama-gqa");
  const std::uint32_t vocab = roomy.spec().vocab_size;
  const auto prompt = make_tokens(7, 12, vocab);
  const RequestKind kind = request_kinds()[1];  // 36 positions: three pages
  const Outcome plain = generated(roomy, kind, prompt, {}, options);
  const std::uint64_t page = plain.session->kv_bytes / 3;
  std::size_t drafted[3] = {};
  for (const std::uint64_t spare : {0u, 1u, 2u}) {
    const Engine tight = load_golden("llama-gqa", {.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}, .kv_budget = (3 + spare) * page});
    const Outcome spec = generated(tight, kind, prompt, trees_of(bush(vocab, plain.sequence), 10, 6), options);
    INFO(spare << " pages to spare");
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
    drafted[spare] = spec.figures.drafted;
    CHECK(tight.kv_figures().used_bytes == 0);
  }
  CHECK(drafted[0] < drafted[2]);
}

TEST_CASE("a branch takes a page of each group at most, while its step lasts", "[speculation]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}});
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(12, 9, vocab);
  const RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  Session session = must(engine.session());
  must(session.append(prompt));
  const KvLayout& layout = session.kv().layout();  // which stays where it is
  std::uint64_t most = 0, beyond = 0;  // pages, where the tokens are drawn
  Sampler sampler = sampling::chain().stage([&](sampling::Candidates&, const sampling::Context& context) {
    const std::uint64_t used = engine.kv_figures().used_bytes / layout.page_bytes(), own = layout.pages(context.history.size() + 12);
    most = std::max(most, used - std::min(used, layout.pages(context.history.size())));
    beyond = std::max(beyond, used - std::min(used, own));
  }).temperature(1.1f).seed(5).build();
  GenerateOptions how = kind.options;
  how.speculate = trees_of(bush(vocab, plain.sequence), 12, 5);
  Told told;
  for (const auto& piece : session.generate(sampler, how)) {
    told.add(must(Result<Piece>(piece)));
  }
  CHECK(told == plain.told);
  CHECK(most >= 3);
  CHECK(beyond <= 4);
  CHECK(engine.kv_figures().used_bytes == layout.page_bytes() * layout.pages(session.position()));
}

TEST_CASE("a step with a tree that is cancelled leaves the session as it was", "[speculation]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}});
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(9, 15, vocab);
  const RequestKind kind = request_kinds()[1];
  const Outcome plain = generated(engine, kind, prompt, {});
  for (const std::size_t at : {16u, 18u, 23u, 30u}) {
    std::stop_source stop;
    const auto grow = must(bush(vocab, plain.sequence)->start(engine));
    const auto stops = grows([&](const DraftContext& context, std::span<TreeDraft> out) {
      if (context.history.size() >= at) stop.request_stop();
      return must(grow->propose_tree(context, out));
    });
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    GenerateOptions how = kind.options;
    how.stop = stop.get_token();
    how.speculate = trees_of(stops);
    Told told;
    {
      Generation generation = session.generate(sampler, how);
      while (const auto piece = generation.next()) {
        if (*piece) told.add(**piece);
        else CHECK(piece->error().code() == ErrorCode::cancelled);
      }
    }
    REQUIRE(told.tokens.size() < plain.told.tokens.size());
    CHECK(must(session.verify()).verdict == Verdict::same);
    CHECK(session.kv().bytes() == session.kv().layout().page_bytes() * session.kv().layout().pages(session.position()));
    how.stop = {};
    how.speculate = {};
    how.max_tokens = plain.told.tokens.size() - told.tokens.size();
    for (const auto& piece : session.generate(sampler, how)) told.add(must(Result<Piece>(piece)));
    CHECK(told == plain.told);
    CHECK(Snapshot(session) == *plain.session);
  }
}

TEST_CASE("where the backend draws, it draws behind branches too", "[speculation]") {
  const Engine host = load_golden("llama-gqa"), drawn = load_golden("llama-gqa");
  make_drawing(drawn);
  const std::uint32_t vocab = host.spec().vocab_size;
  const auto prompt = make_tokens(11, 9, vocab);
  for (const RequestKind& kind : request_kinds()) {
    const Outcome plain = generated(host, kind, prompt, {});
    const Outcome spec = generated(drawn, kind, prompt, trees_of(bush(vocab, plain.sequence)));
    INFO(kind.name);
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
    CHECK(spec.figures.accepted > 0);
  }
}

}  // namespace test_draft_trees
